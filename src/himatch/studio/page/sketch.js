// What the mouse does to a target's heights. Pure functions of lists of numbers; bins are counted from 0.

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** Heights that add up to one; all zeros stay. */
export function normalized(heights) {
  const sum = heights.reduce((total, height) => total + height, 0);
  return sum > 0 ? heights.map((height) => height / sum) : heights.slice();
}

/** Every bin on the way from one point to another, with the height there. Points are `[place, height]`, places in bins. */
function along([from, start], [to, end], count) {
  const [low, high] = [Math.min(from, to), Math.max(from, to)];
  const bins = [];
  for (let bin = Math.floor(clamp(low, 0, count - 1)); bin <= Math.floor(clamp(high, 0, count - 1)); bin++) {
    const middle = clamp(bin + 0.5, low, high);
    const part = from === to ? 1 : clamp((middle - from) / (to - from), 0, 1);
    bins.push([bin, start + part * (end - start)]);
  }
  return bins;
}

/** Bars: each bin under the stroke has the stroke's height. */
export function bars(heights, from, to) {
  const drawn = heights.slice();
  for (const [bin, height] of along(from, to, heights.length)) drawn[bin] = Math.max(0, height);
  return drawn;
}

/** A curve: neighbors are pulled along, so that strokes have smooth sides. */
export function curve(heights, from, to) {
  const drawn = heights.slice();
  for (const [bin, height] of along(from, to, heights.length)) {
    drawn[bin] = Math.max(0, height);
    for (const side of [-1, 1]) {
      const next = bin + side;
      if (next < 0 || next >= drawn.length || (next - to[0]) * (next - from[0]) < 0) continue;
      drawn[next] += 0.22 * (drawn[bin] - drawn[next]);
    }
  }
  return drawn;
}

/** Empty bins under the stroke. */
export function erase(heights, from, to) {
  const drawn = heights.slice();
  for (const [bin] of along(from, to, heights.length)) drawn[bin] = 0;
  return drawn;
}

/** Bins under the stroke, and two on either side, become more like their neighbors; what they hold together stays. */
export function smooth(heights, from, to) {
  const under = along(from, to, heights.length).map(([bin]) => bin);
  const [first, last] = [Math.max(0, under[0] - 2), Math.min(heights.length - 1, under.at(-1) + 2)];
  const drawn = heights.slice();
  for (let bin = first; bin < last; bin++) {  // mass flows between neighbors
    const flow = 0.2 * (heights[bin] - heights[bin + 1]);
    drawn[bin] -= flow;
    drawn[bin + 1] += flow;
  }
  return drawn;
}

export const TOOLS = { curve, bars, erase, smooth };

/** A round dab on a plane, `heights[i][j]`, around the bin `[i, j]`. */
export function dab(heights, [x, y], tool, strength, radius = 1.3) {
  const near = (i, j) => Math.exp(-((i + 0.5 - x) ** 2 + (j + 0.5 - y) ** 2) / (2 * radius ** 2));
  const around = (i, j) => {
    let [sum, count] = [0, 0];
    for (let a = Math.max(0, i - 1); a <= Math.min(heights.length - 1, i + 1); a++)
      for (let b = Math.max(0, j - 1); b <= Math.min(heights[a].length - 1, j + 1); b++) [sum, count] = [sum + heights[a][b], count + 1];
    return sum / count;
  };
  return heights.map((row, i) => row.map((height, j) => {
    const part = near(i, j);
    if (part < 0.02) return height;
    if (tool === "erase") return part > 0.3 ? 0 : height * (1 - part);
    if (tool === "smooth") return height + part * (around(i, j) - height);
    return height + strength * part;
  }));
}
