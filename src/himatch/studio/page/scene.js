// The stage: light, a checkered ground without end, marks of the distance, a camera that follows.

import * as THREE from "./vendor/three.module.min.js";
import { OrbitControls } from "./vendor/OrbitControls.js";
import { palette } from "./axes.js";

const RADIUS = 26;  // meters of ground that are seen
const MARKS = 9;
const EVERY = 5;  // meters between marks

export class Scene {
  constructor(container) {
    this.container = container;
    this.renderer = new THREE.WebGLRenderer({ antialias: true, alpha: true, powerPreference: "high-performance" });
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = THREE.PCFShadowMap;
    this.renderer.toneMapping = THREE.NeutralToneMapping;
    this.renderer.toneMappingExposure = 1.12;
    this.canvas = this.renderer.domElement;
    this.canvas.setAttribute("aria-label", "The robot; drag to look around, scroll to come nearer");
    this.canvas.setAttribute("role", "img");
    container.append(this.canvas);
    this.ratio = Math.min(devicePixelRatio || 1, 2);

    this.scene = new THREE.Scene();
    this.camera = new THREE.PerspectiveCamera(38, 1, 0.05, 200);
    this.camera.up.set(0, 0, 1);
    this.controls = new OrbitControls(this.camera, this.canvas);
    Object.assign(this.controls, { enableDamping: true, dampingFactor: 0.12, maxPolarAngle: 1.54, minDistance: 0.8, maxDistance: 24, enablePan: false });
    this.following = true;
    this.focus = new THREE.Vector3(0, 0, 0.5);

    this.sky = new THREE.HemisphereLight(0xffffff, 0xffffff, 1.6);
    this.sun = new THREE.DirectionalLight(0xffffff, 2.3);
    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(1024, 1024);
    this.sun.shadow.radius = 4;
    this.sun.shadow.bias = -0.003;
    this.sun.shadow.normalBias = 0.02;
    Object.assign(this.sun.shadow.camera, { left: -3.2, right: 3.2, top: 3.2, bottom: -3.2, near: 0.5, far: 16 });
    this.back = new THREE.DirectionalLight(0xffffff, 0.7);
    this.scene.add(this.sky, this.sun, this.sun.target, this.back, this.back.target);
    this.makeGround();
    this.makeReflections();
    this.recolor();
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(container);
  }

  makeGround() {
    const tile = this.tile = document.createElement("canvas");
    tile.width = tile.height = 256;
    this.texture = new THREE.CanvasTexture(tile);
    this.texture.wrapS = this.texture.wrapT = THREE.RepeatWrapping;
    this.texture.colorSpace = THREE.SRGBColorSpace;
    this.texture.anisotropy = 8;
    const shape = new THREE.RingGeometry(0.01, RADIUS, 48, 24);
    const { position, uv } = shape.attributes;
    const colors = new Float32Array(position.count * 4).fill(1);
    for (let k = 0; k < position.count; k++) {
      const away = Math.hypot(position.getX(k), position.getY(k)) / RADIUS;
      colors[4 * k + 3] = Math.max(0, 1 - away) ** 1.6;  // it fades away into the page
      uv.setXY(k, position.getX(k) / 2, position.getY(k) / 2);  // a tile is two meters wide
    }
    shape.setAttribute("color", new THREE.Float32BufferAttribute(colors, 4));
    this.ground = new THREE.Mesh(shape, new THREE.MeshStandardMaterial({ map: this.texture, vertexColors: true, transparent: true, roughness: 0.95, depthWrite: false }));
    this.ground.receiveShadow = true;
    this.ground.renderOrder = -2;
    this.scene.add(this.ground);
    this.marks = Array.from({ length: MARKS }, () => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [256, 64];
      const map = new THREE.CanvasTexture(canvas);
      map.colorSpace = THREE.SRGBColorSpace;
      map.anisotropy = 8;
      const mark = new THREE.Mesh(new THREE.PlaneGeometry(1.6, 0.4), new THREE.MeshBasicMaterial({ map, transparent: true, depthWrite: false, toneMapped: false, opacity: 0.5 }));
      mark.renderOrder = -1;
      mark.visible = false;
      this.scene.add(mark);
      return { mark, canvas, map, meters: null };
    });
  }

  /** What smooth surfaces reflect: a bright sky, a large soft lamp, the ground. */
  makeReflections() {
    const room = new THREE.Scene();
    const glow = (shape, color, strength) => new THREE.Mesh(shape, new THREE.MeshBasicMaterial({ color: new THREE.Color(color).multiplyScalar(strength), side: THREE.DoubleSide }));
    room.add(glow(new THREE.SphereGeometry(10, 24, 12), 0xc9d6e6, 0.55));
    const lamp = glow(new THREE.PlaneGeometry(7, 7), 0xffffff, 6);
    lamp.position.set(-3, -4, 7);
    lamp.lookAt(0, 0, 0);
    const floor = glow(new THREE.CircleGeometry(9, 24), 0x8d97a3, 0.5);
    floor.position.z = -2;
    room.add(lamp, floor);
    const generator = new THREE.PMREMGenerator(this.renderer);
    this.reflections = generator.fromScene(room, 0.03).texture;
    generator.dispose();
  }

  /** Light or dark. */
  recolor() {
    const { ground, checker, card } = palette();
    const context = this.tile.getContext("2d");
    context.fillStyle = ground;
    context.fillRect(0, 0, 256, 256);
    context.fillStyle = checker;
    context.fillRect(0, 0, 128, 128);
    context.fillRect(128, 128, 128, 128);
    this.texture.needsUpdate = true;
    this.sky.groundColor.set(checker);
    const dark = new THREE.Color(card).getHSL({}).l < 0.5;
    this.sky.intensity = dark ? 1.1 : 1.7;
    this.sun.intensity = dark ? 2.2 : 2.4;
    this.marks.forEach((one) => { one.meters = null; });
    this.changed = true;
  }

  resize() {
    const { clientWidth, clientHeight } = this.container;
    if (!clientWidth || !clientHeight) return;
    this.renderer.setPixelRatio(this.ratio);
    this.renderer.setSize(clientWidth, clientHeight, false);
    this.camera.aspect = clientWidth / clientHeight;
    this.camera.updateProjectionMatrix();
    this.changed = true;
    this.render(0);
  }

  /** Where the model wants to be looked at from: MuJoCo's distance and height, turned a little to show its depth. */
  look({ distance = 3, height = 0.5, azimuth = 90 } = {}) {
    this.height = height;
    this.focus.set(this.focus.x, this.focus.y, height);
    const [turn, tilt, far] = [((azimuth - 24) * Math.PI) / 180, (13 * Math.PI) / 180, distance * 1.22 * Math.max(1, 1.45 / this.camera.aspect)];
    this.camera.position.set(
      this.focus.x - far * Math.cos(tilt) * Math.cos(turn),
      this.focus.y - far * Math.cos(tilt) * Math.sin(turn),
      height + far * Math.sin(tilt),
    );
    this.controls.target.copy(this.focus);
    this.controls.update();
  }

  /** The camera, the light and the ground go where the robot goes; `soft` is how much of the way. */
  follow(x, y, soft) {
    const [dx, dy] = [(x - this.focus.x) * soft, (y - this.focus.y) * soft];
    this.changed ||= Math.abs(dx) + Math.abs(dy) > 1e-4;
    this.focus.x += dx;
    this.focus.y += dy;
    if (this.following) {
      for (const point of [this.camera.position, this.controls.target]) {
        point.x += dx;
        point.y += dy;
      }
    }
    const { x: fx, y: fy } = this.following ? this.focus : this.controls.target;
    this.ground.position.set(fx, fy, 0);
    this.texture.offset.set((fx / 2) % 1, (fy / 2) % 1);
    this.sun.target.position.set(this.focus.x, this.focus.y, 0.3);
    this.sun.position.set(this.focus.x - 2.2, this.focus.y - 3.2, 6.5);
    this.back.target.position.copy(this.sun.target.position);
    this.back.position.set(this.focus.x + 4, this.focus.y + 3, 2.5);
  }

  /** Meters on the ground in front of robots that run along x. */
  measure(shown) {
    const first = Math.round(this.ground.position.x / EVERY) - Math.floor(MARKS / 2);
    const { soft } = palette();
    for (let k = first; k < first + MARKS; k++) {
      const one = this.marks[((k % MARKS) + MARKS) % MARKS];
      one.mark.visible = shown;
      if (!shown || one.meters === k * EVERY) continue;
      one.meters = k * EVERY;
      const context = one.canvas.getContext("2d");
      context.clearRect(0, 0, 256, 64);
      context.font = "600 34px system-ui, sans-serif";
      context.textAlign = "center";
      context.textBaseline = "middle";
      context.fillStyle = soft;
      context.fillText(`${one.meters} m`.replace("-", "−"), 128, 34);
      one.map.needsUpdate = true;
      one.mark.position.set(one.meters, -1.0, 0.002);
    }
  }

  /** Draws where something has changed: a page that rests leaves the processor to others. */
  render(elapsed) {
    if (!this.controls.update() && !this.changed) return false;
    this.changed = false;
    this.renderer.render(this.scene, this.camera);
    this.spare(elapsed);
    return true;
  }

  /** A machine that draws slowly gets fewer pixels, then no shadows, rather than fewer pictures a second. */
  spare(elapsed) {
    if (!elapsed || elapsed > 500) return;
    this.pace = this.pace ? this.pace + 0.05 * (elapsed - this.pace) : elapsed;
    this.count = (this.count ?? 0) + 1;
    if (this.pace < 40 || this.count < 40) return;
    this.count = this.pace = 0;
    if (this.ratio > 0.75) {
      this.ratio = this.ratio > 1 ? 1 : 0.7;
      this.resize();
    } else this.sun.castShadow = false;
  }

  dispose() {
    this.observer.disconnect();
    this.controls.dispose();
    this.renderer.dispose();
    this.canvas.remove();
  }
}
