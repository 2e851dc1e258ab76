// A robot from MuJoCo's geoms: capsules, cylinders, spheres, ellipsoids, boxes and meshes, one group per body.

import * as THREE from "./vendor/three.module.min.js";

const PARTS = 28;  // around a capsule

function shape({ type, size, mesh }, meshes) {
  const [a, b, c] = size;
  if (type === "capsule") return new THREE.CapsuleGeometry(a, 2 * b, 10, PARTS).rotateX(Math.PI / 2);
  if (type === "cylinder") return new THREE.CylinderGeometry(a, a, 2 * b, PARTS).rotateX(Math.PI / 2);
  if (type === "sphere") return new THREE.SphereGeometry(a, PARTS, PARTS / 2);
  if (type === "ellipsoid") return new THREE.SphereGeometry(1, PARTS, PARTS / 2).scale(a, b, c);
  if (type === "box") return new THREE.BoxGeometry(2 * a, 2 * b, 2 * c);
  if (type !== "mesh") return null;
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.Float32BufferAttribute(meshes[mesh].vertices, 3));
  geometry.setIndex(meshes[mesh].faces);
  geometry.computeVertexNormals();
  return geometry;
}

const place = (object, pos, [w, x, y, z]) => {
  object.position.fromArray(pos);
  object.quaternion.set(x, y, z, w);
  return object;
};

/** Shapes and colors of a model; they are shared by all its robots. */
export class Model {
  constructor(geometry) {
    this.bodies = geometry.bodies.length;
    const own = new Map();  // the model's colors in the order they come
    this.parts = geometry.geoms.filter(({ type, rgba }) => type !== "plane" && rgba[3] > 0).map((geom) => {
      const key = geom.rgba.join();
      if (geom.body >= 0 && !own.has(key)) own.set(key, own.size);
      return { ...geom, key, shape: shape(geom, geometry.meshes ?? []) };
    }).filter((part) => part.shape);
    this.plain = own.size <= 3;  // a model without colors that mean something is drawn in those of the page
    this.order = own;
  }

  /** Models of one color are paler towards their feet, those of two or three have as many shades. */
  color({ key, rgba, body }, shades) {
    if (!this.plain) return new THREE.Color().setRGB(...rgba.slice(0, 3), THREE.SRGBColorSpace);
    if (this.order.size > 1) return new THREE.Color(shades[this.order.get(key) % shades.length]);
    return new THREE.Color(shades[0]).lerp(new THREE.Color(shades[1]), body / Math.max(1, this.bodies - 1));
  }

  /** What does not move, floors excepted. */
  world() {
    const group = new THREE.Group();
    for (const part of this.parts.filter(({ body }) => body < 0)) {
      const color = new THREE.Color().setRGB(...part.rgba.slice(0, 3), THREE.SRGBColorSpace);
      const mesh = new THREE.Mesh(part.shape, new THREE.MeshStandardMaterial({ color, roughness: 0.8 }));
      mesh.castShadow = mesh.receiveShadow = true;
      group.add(place(mesh, part.pos, part.quat));
    }
    return group;
  }
}

const [from, to] = [new THREE.Quaternion(), new THREE.Quaternion()];

/** One robot; a ghost lets light through. */
export class Robot {
  constructor(model, shades, ghost, reflections) {
    this.model = model;
    this.ghost = ghost;
    this.group = new THREE.Group();
    this.bodies = Array.from({ length: model.bodies }, () => new THREE.Group());
    this.group.add(...this.bodies);
    this.materials = new Map();
    for (const part of model.parts.filter(({ body }) => body >= 0)) {
      const key = model.order.size > 1 ? part.key : part.body;
      if (!this.materials.has(key)) {
        const order = this.materials.size;
        this.materials.set(key, new THREE.MeshStandardMaterial({
          polygonOffset: true, polygonOffsetFactor: order, polygonOffsetUnits: 4 * order,  // legs that overlap do not flicker
          color: model.color(part, shades), roughness: 0.38, metalness: 0.05, envMap: reflections, envMapIntensity: 0.55,
          transparent: ghost, opacity: ghost ? 0.5 : 1, depthWrite: !ghost,
        }));
      }
      const mesh = new THREE.Mesh(part.shape, this.materials.get(key));
      mesh.castShadow = !ghost;
      mesh.receiveShadow = !ghost;
      this.bodies[part.body].add(place(mesh, part.pos, part.quat));
    }
  }

  recolor(shades) {
    for (const part of this.model.parts.filter(({ body }) => body >= 0)) {
      this.materials.get(this.model.order.size > 1 ? part.key : part.body).color.copy(this.model.color(part, shades));
    }
  }

  /** Between two poses. */
  pose(a, b, part) {
    this.bodies.forEach((body, k) => {
      const at = 7 * k;
      body.position.set(a[at] + part * (b[at] - a[at]), a[at + 1] + part * (b[at + 1] - a[at + 1]), a[at + 2] + part * (b[at + 2] - a[at + 2]));
      from.set(a[at + 4], a[at + 5], a[at + 6], a[at + 3]);
      to.set(b[at + 4], b[at + 5], b[at + 6], b[at + 3]);
      body.quaternion.slerpQuaternions(from, to, part);
    });
  }

  dispose() {
    this.group.removeFromParent();
    this.materials.forEach((material) => material.dispose());
  }
}
