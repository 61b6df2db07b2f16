// The arm that moves along a design, and the cursor of its curves.

// Radius of the picture; sides of the squares of the ground [m]; length of the base's axes as a
// share of the reach.
const SIZE = 280;
const GRIDS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];
const AXES = 0.2;

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
function set(node, attributes) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
}
function make(name, attributes, text) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  set(node, attributes);
  if (text) node.textContent = text;
  return node;
}

// What is around `centre`, as far as `reach`: sliders and the pointer turn it, and `draw`
// it anew with the view.
function turntable(box, { centre, reach }, draw) {
  const svg = box.querySelector('svg');
  const [around, above] = box.querySelectorAll('.turn input');
  const scale = SIZE / reach;
  function show() {
    const [a, e] = [around, above].map((slider) => (slider.value * Math.PI) / 180);
    const right = [-Math.sin(a), Math.cos(a), 0];
    const up = [-Math.sin(e) * Math.cos(a), -Math.sin(e) * Math.sin(a), Math.cos(e)];
    const near = [Math.cos(e) * Math.cos(a), Math.cos(e) * Math.sin(a), Math.sin(e)];
    const place = (p) => {
      const d = p.map((value, i) => value - centre[i]);
      return [scale * dot(right, d), -scale * dot(up, d)];
    };
    draw({ near, place });
  }
  svg.addEventListener('pointerdown', (event) => svg.setPointerCapture(event.pointerId));
  svg.addEventListener('pointermove', (event) => {
    if (!svg.hasPointerCapture(event.pointerId)) return;
    around.value = ((Number(around.value) - event.movementX + 540) % 360) - 180;
    above.value = Number(above.value) + event.movementY;
    show();
  });
  for (const slider of [around, above]) slider.addEventListener('input', show);
  show();
}

// Outline of what the points of a convex body look like: their convex hull, counter-clockwise.
function outline(points) {
  const sorted = [...points].sort((p, q) => p[0] - q[0] || p[1] - q[1]);
  const half = (all) => {
    const chain = [];
    for (const p of all) {
      while (chain.length > 1) {
        const [a, b] = chain.slice(-2);
        if ((b[0] - a[0]) * (p[1] - a[1]) > (b[1] - a[1]) * (p[0] - a[0])) break;
        chain.pop();
      }
      chain.push(p);
    }
    return chain.slice(0, -1);
  };
  return [...half(sorted), ...half(sorted.reverse())];
}

// Frames of base and joints at a time, three rows each, between those that are kept.
function framesAt({ period, frames }, unit, time) {
  const place = (time / period) * (frames.length - 1);
  const k = Math.min(Math.floor(place), frames.length - 2);
  const [one, other, share] = [frames[k], frames[k + 1], place - k];
  const flat = one.map((value, i) => unit * (value + share * (other[i] - value)));
  const found = [[1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]];
  for (let i = 0; i < flat.length; i += 12) found.push(flat.slice(i, i + 12));
  return found;
}

const moved = (f, [x, y, z]) => [0, 4, 8].map((r) => f[r] * x + f[r + 1] * y + f[r + 2] * z + f[r + 3]);

// What stands still, as lines: the ground as a grid, the box of the tool, the axes of the base.
function surroundings({ ground, box, centre, reach }, grid) {
  const lines = [];
  const most = Math.ceil(reach / grid);
  const [x, y] = centre.map((value) => grid * Math.round(value / grid));
  for (let k = -most; ground !== null && k <= most; k += 1) {
    const [far, at] = [most * grid, k * grid];
    lines.push(['ground', [[x - far, y + at, ground], [x + far, y + at, ground]]]);
    lines.push(['ground', [[x + at, y - far, ground], [x + at, y + far, ground]]]);
  }
  const corner = (k) => [0, 1, 2].map((axis) => box[(k >> axis) & 1][axis]);
  const finite = box.every((side) => side.length === 3 && side.every(Number.isFinite));
  for (let k = 0; finite && k < 8; k += 1) {
    for (const bit of [1, 2, 4]) if (!(k & bit)) lines.push(['box', [corner(k), corner(k | bit)]]);
  }
  const axis = (k) => [0, 1, 2].map((i) => (i === k ? AXES * reach : 0));
  return [...lines, ...[0, 1, 2].map((k) => ['axis', [[0, 0, 0], axis(k)]])];
}

function drawArm(svg, arm) {
  const grid = GRIDS.find((size) => arm.reach / size < 8) ?? GRIDS.at(-1);
  const lines = surroundings(arm, grid);
  const still = lines.map(([css, ends]) => [make('polyline', { class: css }), ends]);
  const bodies = arm.bodies.map((body) => {
    const node = make('polygon', { class: body.obstacle ? 'obstacle' : 'link' }, '');
    node.append(make('title', {}, body.name));
    return { ...body, node };
  });
  const group = make('g', {});
  const path = make('polyline', { class: 'path' });
  const bones = arm.edges.map(() => make('polyline', { class: 'bone' }));
  const joints = arm.nodes.map(() => make('circle', { r: 3.5 }));
  group.append(...bodies.map((body) => body.node));
  const letters = ['x', 'y', 'z'].map((letter) => make('text', {}, letter));
  svg.append(...still.map(([node]) => node), ...letters, path, group, ...bones, ...joints);
  if (arm.ground !== null) svg.append(make('text', { x: -292, y: 290 }, `squares of ${grid} m`));

  const toolPaths = {};
  for (const [name, motion] of Object.entries(arm.motions)) {
    const [frame, ...point] = arm.nodes.at(-1);
    const times = motion.frames.map((_, k) => (k / (motion.frames.length - 1)) * motion.period);
    toolPaths[name] = times.map((time) => moved(framesAt(motion, arm.unit, time)[frame], point));
  }
  const trace = (node, points) => {
    set(node, { points: points.map((p) => p.map((v) => v.toFixed(1))).join(' ') });
  };

  return ({ place, near }, motion, time) => {
    for (const [node, ends] of still) trace(node, ends.map(place));
    letters.forEach((letter, k) => {
      const [x, y] = place(lines.at(k - 3)[1][1]);
      set(letter, { x: x + 3, y });
    });
    set(path, { class: `path ${motion.name}` });
    trace(path, toolPaths[motion.name].map(place));
    const frames = framesAt(motion, arm.unit, time);
    const depths = bodies.map(({ node, frame, points }) => {
      const placed = points.map((p) => moved(frames[frame], p));
      trace(node, outline(placed.map(place)));
      return [placed.reduce((sum, p) => sum + dot(near, p), 0) / placed.length, node];
    });
    const order = depths.sort((a, b) => a[0] - b[0]).map(([, node]) => node);
    if (order.some((node, k) => node !== group.children[k])) group.append(...order);
    const nodes = arm.nodes.map(([frame, ...point]) => place(moved(frames[frame], point)));
    arm.edges.forEach((edge, k) => trace(bones[k], edge.map((n) => nodes[n])));
    nodes.forEach(([cx, cy], k) => set(joints[k], { cx, cy }));
  };
}

function animate({ arm }) {
  const box = document.querySelector('.player');
  if (!box || !arm) return;
  const [slider, said] = [box.querySelector('[aria-label="Time"]'), box.querySelector('output')];
  const button = box.querySelector('button');
  const draw = drawArm(box.querySelector('svg'), arm);
  const range = plots.get_model_by_name('time');
  const curves = plots.roots().flatMap((plot) => plot.renderers).filter((r) => r.name in arm.motions);
  const cursors = plots.roots().flatMap((plot) => plot.center).filter((r) => r.name === 'cursor');
  let [motion, time, view, last] = [null, 0, null, null];

  function show() {
    draw(view, motion, time);
    slider.value = time;
    said.textContent = `${time.toFixed(1)} of ${motion.period} s`;
    slider.setAttribute('aria-valuetext', said.textContent);
    for (const cursor of cursors) cursor.location = time;
  }
  function choose(name) {
    motion = { name, ...arm.motions[name] };
    time = 0;
    const end = motion.period;
    slider.max = end;
    range.setv({ start: 0, end, reset_start: 0, reset_end: end, bounds: [0, end] });
    for (const curve of curves) curve.visible = curve.name === name;
    if (view) show();
  }
  function step(now) {
    if (last === null) return;
    time = (time + Math.max(0, now - last) / 1000) % motion.period; // a frame may precede the click
    last = now;
    show();
    requestAnimationFrame(step);
  }
  function play(on) {
    button.textContent = on ? 'Pause' : 'Play';
    last = on ? performance.now() : null;
    if (on) requestAnimationFrame(step);
  }

  choose(Object.keys(arm.motions)[0]);
  turntable(box, arm, (now) => {
    view = now;
    show();
  });
  for (const radio of box.querySelectorAll('[type="radio"]')) {
    radio.addEventListener('change', () => choose(radio.value));
  }
  slider.addEventListener('input', () => {
    play(false);
    time = Number(slider.value);
    show();
  });
  button.addEventListener('click', () => play(last === null));
  play(!matchMedia('(prefers-reduced-motion: reduce)').matches);
}

embedded.then(animate);
