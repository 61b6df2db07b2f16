'use strict';
// The page of a session that runs: its data come over a WebSocket, its buttons are requests.

const KEPT = 600; // rows that are drawn
const PARTS = ['position', 'reference', 'error', 'effort', 'residual'];
const at = (id) => document.getElementById(id);
const lines = [...document.querySelectorAll('tr[data-joint]')];
let rows = [];
let texts = '';

const short = (value) => (value === null ? '—' : value.toPrecision(3));
const part = (row, joint, k) => row[1 + PARTS.length * joint + k];

function show(news) {
  if (news.joints.join() !== lines.map((line) => line.cells[0].textContent).join()) {
    return location.reload(); // another robot, or the first one that is known
  }
  at('state').textContent = news.state + (news.left > 0 ? `, ${Math.ceil(news.left)} s left` : '');
  at('message').textContent = news.message;
  at('session').className = `verdict ${{ failed: 'poor', done: 'good' }[news.state] ?? 'fair'}`;
  at('left').hidden = !news.duration;
  if (news.duration) at('left').value = 1 - Math.max(news.left, 0) / news.duration;
  at('now').classList.toggle('stale', news.stale);
  rows = [...rows, ...news.rows].slice(-KEPT);
  const last = rows.at(-1);
  if (last) for (const [joint, line] of lines.entries()) showJoint(line, last, joint);
  draw();
  const known = Object.entries(news.sigmas);
  at('progress').hidden = !known.length && !news.known;
  at('known').textContent = news.known;
  fill('sigmas', known, ([name, sigma]) => {
    const bar = made('progress', { value: Math.min(sigma, 1), ariaLabel: `σ of ${name}` });
    const size = made('td', {}, `${(100 * sigma).toPrecision(2)} %`, ' ', bar);
    return made('tr', {}, made('th', {}, name), size);
  });
  const changed = JSON.stringify([news.messages, news.sessions]);
  if (changed === texts) return;
  texts = changed;
  fill('messages', news.messages, ([when, level, text]) => {
    const tag = made('span', { className: 'tag' }, new Date(1000 * when).toLocaleTimeString());
    return made('li', { className: level }, tag, text);
  });
  fill('sessions', news.sessions, ([name, path]) => made('li', {}, made('a', { href: path }, name)));
}

function showJoint(line, row, joint) {
  const [q, , error, effort, residual] = PARTS.map((_, k) => part(row, joint, k));
  for (const [column, value] of [q, error, effort, residual].entries()) {
    line.cells[column + 1].querySelector('b').textContent = short(value);
  }
  for (const [column, value, most] of [[2, error, line.dataset.error], [3, effort, line.dataset.effort]]) {
    const meter = line.cells[column].querySelector('meter');
    meter.hidden = !Number(most);
    if (!meter.hidden) meter.value = Math.min(Math.abs(value ?? 0) / most, 1);
  }
}

function draw() {
  const source = plots?.get_model_by_name('series');
  if (!source) return;
  const joint = Number(chooser?.value ?? 0);
  const columns = PARTS.map((p, k) => [p, rows.map((row) => part(row, joint, k) ?? NaN)]);
  source.data = { time: rows.map((row) => row[0]), ...Object.fromEntries(columns) };
}
chooser?.addEventListener('change', draw);

function made(kind, properties, ...content) {
  const node = Object.assign(document.createElement(kind), properties);
  node.append(...content);
  return node;
}
function fill(id, values, make) {
  at(id).replaceChildren(...values.map(make));
}

for (const button of document.querySelectorAll('[data-call]')) {
  button.addEventListener('click', async () => {
    const name = button.dataset.call;
    if (button.dataset.ask && !confirm(`Ask the robot to ${name}? It may move.`)) return;
    const open = [...document.querySelectorAll('[data-ask]')];
    for (const each of open) each.disabled = true;
    at('answer').textContent = `${name}: asked`;
    try {
      const answer = await fetch(`call/${name}`, { method: 'POST' });
      at('answer').textContent = `${name}: ${await answer.text()}`;
    } catch {
      at('answer').textContent = `${name}: the page does not reach the robot. Use its own stop.`;
    } finally {
      for (const each of open) each.disabled = false;
    }
  });
}

function connect() {
  const address = new URL('data', location.href);
  address.protocol = address.protocol.replace('http', 'ws');
  const socket = new WebSocket(address);
  socket.onopen = () => (rows = []);
  socket.onmessage = (event) => show(JSON.parse(event.data));
  socket.onclose = () => {
    at('state').textContent = 'not connected';
    at('message').textContent = 'Nothing is heard from the node live: what is shown is old.';
    at('session').className = 'verdict poor';
    setTimeout(connect, 1000);
  };
}
connect();
