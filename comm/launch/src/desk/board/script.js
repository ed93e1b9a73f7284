'use strict';
const $ = id => document.getElementById(id);
const make = (tag, parent, kind) => { const node = parent.appendChild(document.createElement(tag)); if (kind) node.className = kind; return node; };
const put = (node, text) => { if (node.textContent !== text) node.textContent = text; };
const KINDS = ['computing', 'checkpoint', 'waiting', 'dead', 'rebuilding'];
const SPANS = [['30 s', 30], ['2 min', 120], ['10 min', 600], ['all', Infinity]];
const SPANS_MAX = 4000, NEWS_MAX = 200, MARKS_MAX = 5000;

let job;      // what the launcher has said last
let ranks;    // of each rank what it did: {doing, speaks, spans: [{from, kind}], lost: [times]}
let marks;    // when checkpoints were committed
let losses;   // when ranks or hosts were lost
let series;   // the value over time
let steps;    // times and steps of the last seconds
let offset;   // of the job's clock to that of this page
let ended;    // how the job has ended
let shown = 30;
let stale = true;

function forget() {
  [ranks, marks, losses, steps] = [[], [], [], []];
  [job, series, offset, ended] = [null, null, null, null];
  $('news').replaceChildren();
}

const list = all => all.length < 2 ? all.join('') : `${all.slice(0, -1).join(', ')} and ${all.at(-1)}`;
const named = all => `${all.length > 1 ? 'ranks' : 'rank'} ${list(all.length > 12 ? [...all.slice(0, 11), `${all.length - 11} more`] : all)}`;
const count = (n, what) => `${n.toLocaleString('en')} ${what}${n === 1 ? '' : 's'}`;
const two = n => String(n).padStart(2, '0');
function clock(s, digits = 1) {
  if (s < 60) return `${s.toFixed(digits)} s`;
  const whole = Math.floor(s), [h, m] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return h ? `${h}:${two(m)}:${two(whole % 60)}` : `${m}:${two(whole % 60)}`;
}
const brief = s => s < 1 ? `${(1000 * s).toFixed(s < .01 ? 1 : 0)} ms` : clock(s);
function number(x) {
  if (x === 0) return '0';
  const size = Math.abs(x);
  if (size >= 1e5 || size < 1e-3) return x.toExponential(2).replace('e+', 'e');
  return x.toLocaleString('en', { maximumSignificantDigits: 4, useGrouping: false });
}
const color = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const time = () => ended || offset === null ? (job ? job.status.seconds : 0) : performance.now() / 1000 + offset;

// What has happened.
function rank(number) {
  return ranks[number] ??= { doing: null, host: null, speaks: false, spans: [], lost: [] };
}
function turn(one, at, kind) {
  if (one.doing === kind) return;
  one.doing = kind;
  one.spans.push({ from: at, kind });
  if (one.spans.length > SPANS_MAX) one.spans.splice(0, SPANS_MAX / 4);
}
function tell(at, mark, text, detail = '', group = null) {
  const news = $('news'), first = news.firstElementChild;
  const item = group && first?.dataset.group === group ? first : document.createElement('li');
  if (item !== first) {
    item.innerHTML = '<time></time><i></i><span></span>';
    if (group) item.dataset.group = group;
    news.prepend(item);
    if (news.children.length > NEWS_MAX) news.lastElementChild.remove();
  }
  const [when, , words] = item.children;
  item.style.setProperty('--mark', `var(--${mark})`);
  when.textContent = clock(at);
  words.textContent = text;
  if (detail) make('span', words).textContent = ` ${detail}`;
}
const heard = {
  stands(at, { rank: number, host }) {
    const one = rank(number);
    if (one.host !== host) { one.host = host; turn(one, at, 'waiting'); }
  },
  does(at, { rank: number, what }) {
    const one = rank(number);
    one.speaks = true;
    turn(one, at, KINDS.includes(what) ? what : 'waiting');
  },
  lost(at, { rank: number, cause }) {
    const one = rank(number);
    turn(one, at, 'dead');
    one.lost.push(at);
    losses.push(at);
    tell(at, 'bad', `Rank ${number} is lost`, cause);
  },
  host(at, { name, back }) {
    if (!back) losses.push(at);
    tell(at, back ? 'good' : 'bad', `Host ${name} ${back ? 'takes processes again' : 'is lost'}`);
  },
  generation(at, { number, lost }) {
    // Whoever says nothing of what it does is not drawn as if it waited.
    ranks.forEach((one, i) => { if (!one.speaks && (one.doing !== 'dead' || lost.includes(i))) turn(one, at, 'none'); });
    if (number === 0) tell(at, 'computing', 'All ranks have joined');
    else tell(at, 'rebuilding', `Generation ${number} begins`, lost.length ? `after the loss of ${named(lost)}` : 'with new links');
  },
  resumed(at, { again }) { tell(at, 'computing', 'All ranks work again', `${count(again, 'step')} done again`); },
  mark(at, { number }) {
    marks.push(at);
    if (marks.length > MARKS_MAX) marks.splice(0, MARKS_MAX / 4);
    const first = $('news').firstElementChild;
    const from = first?.dataset.group === 'mark' ? +first.dataset.from : number;
    tell(at, 'checkpoint', from === number ? `Checkpoint ${number}` : `Checkpoints ${from} to ${number}`, '', 'mark');
    $('news').firstElementChild.dataset.from = from;
  },
  saved(at, { number, error }) {
    if (error) tell(at, 'bad', `Checkpoint ${number} could not be written to files`, error);
    else tell(at, 'checkpoint', `Checkpoint ${number} is in files`);
  },
  stalled(at, { account }) { tell(at, 'bad', 'Ranks wait for long', account); },
};

// How it is. Whoever has left in peace has done its work.
const works = one => one.state === 'working' || one.state === 'gone';
function state(text, mark) { put($('state'), text); $('state').style.setProperty('--mark', `var(--${mark})`); }
function show() {
  const { status, hosts } = job, failures = status.failures;
  put($('job'), `Job ${status.job}`);
  put($('command'), status.command);
  $('command').title = status.command;
  document.title = `${status.state}: job ${status.job}`;
  if (!ended) state(status.state, { running: 'computing', repairing: 'rebuilding' }[status.state] ?? 'waiting');
  const up = status.ranks.filter(works).length;
  $('up').innerHTML = `${up} <small>of ${status.ranks.length}</small>`;
  put($('generation'), status.generation === null ? 'none has begun' : `generation ${status.generation}`);
  const [first, ...rest] = (status.progress ?? '–').split(', ');
  put($('work'), status.done === null ? first : `${(100 * status.done).toFixed(1)} %`);
  put($('done'), status.done === null ? rest.join(', ') : status.progress ?? '');
  $('bar').className = status.done === null ? 'unknown' : '';
  $('bar').firstChild.style.width = `${100 * (status.done ?? 0)}%`;
  put($('checkpoints'), status.checkpoints.toLocaleString('en'));
  const age = marks.length ? `, ${clock(Math.max(0, time() - marks.at(-1)))} ago` : '';
  put($('epoch'), status.epoch === null ? 'none yet' : `epoch ${status.epoch}${age}${status.files ? `, ${status.files} in files` : ''}`);
  put($('failures'), failures.total.toLocaleString('en'));
  $('failures').className = failures.total ? 'bad' : '';
  const open = failures.total - failures.recovered;
  put($('recovery'), failures.total === 0 ? 'none so far' : open && !ended ? 'repair under way' : failures.recovered
    ? `back in ${brief(failures.recovery_seconds / failures.recovered)}${failures.recovered > 1 ? ' (mean)' : ''}` : '');
  const newest = status.ranks.map(one => one.step).filter(step => step !== null).sort((a, b) => a - b);
  const step = newest[Math.floor(newest.length / 2)];
  if (step !== undefined) {
    if (steps.length && step < steps.at(-1)[1]) steps = [];
    steps.push([status.seconds, step]);
    while (steps.length > 2 && steps[0][0] < status.seconds - 5) steps.shift();
    const [[from, first], [to, last]] = [steps[0], steps.at(-1)];
    if (to - from > .4) put($('rate'), number(+((last - first) / (to - from)).toPrecision(3)));
    put($('step'), `step ${step.toLocaleString('en')}`);
  }
  showRanks(status, hosts);
}
const homes = new Map(); // of each host its part of the page
function showRanks(status, hosts) {
  const by = new Map(hosts.map(one => [one.host, []]));
  for (const one of status.ranks) {
    const host = one.host ?? rank(one.rank).host ?? '–';
    if (!by.has(host)) by.set(host, []);
    by.get(host).push(one);
  }
  const all = status.ranks.length;
  $('ranks').className = `panel ${all > 256 ? 'tiny' : all > 40 ? 'dense' : ''}`;
  for (const name of homes.keys()) if (!by.has(name)) { homes.get(name).node.remove(); homes.delete(name); }
  for (const [name, members] of by) {
    let home = homes.get(name);
    if (!home) {
      const node = make('section', $('hosts'), 'host'), head = make('header', node), rows = make('div', node, 'rows');
      make('b', head).textContent = name;
      home = { node, note: make('span', head), rows, canvas: make('canvas', rows), lines: [] };
      homes.set(name, home);
    }
    const up = members.filter(works).length;
    const { state: use = 'open', load = null } = hosts.find(one => one.host === name) ?? {};
    put(home.note, (members.length ? `${up} of ${count(members.length, 'rank')} ${ended ? 'done' : 'work'}` : 'no ranks') + (use === 'open' ? '' : `, ${use}`) + (load === null ? '' : `, load ${load.toFixed(2)}`));
    home.note.className = up < members.length || use === 'awaited' ? 'bad' : '';
    while (home.lines.length > members.length) home.lines.pop().node.remove();
    while (home.lines.length < members.length) {
      const node = make('div', home.rows, 'row');
      const cells = ['', 'lane', 'dot', 'n', 'n soft', 'n soft'].map(kind => make('div', node, kind));
      home.lines.push({ node, cells });
    }
    home.members = members.map(one => one.rank);
    members.forEach((one, i) => {
      const { node, cells } = home.lines[i], own = rank(one.rank);
      const working = one.state === 'working';
      const word = working ? (own.speaks ? own.doing : 'working') : own.doing === 'dead' ? `lost, ${one.state}` : one.state === 'gone' ? 'done' : one.state;
      const waits = one.waits ? `waits in ${one.waits}` : '';
      const whom = one.waits?.match(/ for (.*?)(, (tag|communicator|since) .*)?$/)?.[1];
      put(cells[0], String(one.rank));
      put(cells[2], whom ? `waits for ${whom}` : word);
      cells[2].style.setProperty('--mark', `var(--${whom ? 'waiting' : working ? own.speaks ? own.doing : 'track' : own.doing === 'dead' ? 'dead' : 'waiting'})`);
      put(cells[3], one.step === null ? '–' : one.step.toLocaleString('en'));
      put(cells[4], one.incarnation ? `${one.incarnation}×` : '–');
      put(cells[5], one.pid === null ? '–' : String(one.pid));
      cells[4].className = one.incarnation ? 'n bad' : 'n soft';
      node.title = `rank ${one.rank}: ${word}${waits ? `, ${waits}` : ''}`;
    });
  }
  stale = true;
}

// What is drawn.
function ready(canvas, width, height) {
  const scale = Math.min(window.devicePixelRatio || 1, 8192 / Math.max(height, 1));
  const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const pen = canvas.getContext('2d');
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = '11px system-ui, "DejaVu Sans", sans-serif';
  return pen;
}
function ticks(from, to, most) {
  const rough = (to - from) / most, unit = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 18000, 36000, 86400].find(unit => unit >= rough) ?? 86400 * Math.ceil(rough / 86400);
  const all = [];
  for (let at = Math.ceil(from / unit) * unit; at <= to; at += unit) all.push(at);
  return all;
}
function cross(pen, x, y, size, paint) {
  // With a rim, so that it is seen on every ground.
  for (const [ink, wide] of [[paint.panel, 4.5], [paint.bad, 1.75]]) {
    [pen.strokeStyle, pen.lineWidth] = [ink, wide];
    pen.beginPath();
    pen.moveTo(x - size, y - size); pen.lineTo(x + size, y + size); pen.moveTo(x - size, y + size); pen.lineTo(x + size, y - size);
    pen.stroke();
  }
}
function drawRanks(now, paint) {
  const from = Math.max(0, now - shown), long = Math.max(now - from, 1e-3), to = from + Math.max(long, shown === Infinity ? 1 : shown);
  const axis = $('axis'), width = axis.clientWidth, x = at => (at - from) / (to - from) * width;
  const pen = ready(axis, width, 26);
  pen.fillStyle = paint.soft;
  pen.textBaseline = 'alphabetic';
  for (const at of ticks(from, to, width / 65)) {
    const text = clock(at, 0), room = pen.measureText(text).width / 2;
    if (x(at) < room || x(at) > width - room) continue;
    pen.fillText(text, x(at) - room, 10);
  }
  pen.fillStyle = paint.checkpoint;
  let last = -9;
  for (const at of marks) if (at >= from && x(at) - last >= 2) { last = x(at); pen.fillRect(last - .75, 17, 1.5, 7); }
  for (const at of losses) if (at >= from) cross(pen, x(at), 20.5, 3.5, paint);
  for (const home of homes.values()) {
    if (!home.lines.length) { home.canvas.width = 0; continue; }
    const box = home.rows.getBoundingClientRect();
    if (box.bottom < 0 || box.top > innerHeight) continue;
    const lane = home.lines[0].cells[1], high = home.lines[0].node.offsetHeight, height = high * home.lines.length;
    Object.assign(home.canvas.style, { left: `${lane.offsetLeft}px`, width: `${width}px`, height: `${height}px` });
    const pen = ready(home.canvas, width, height), pad = high > 20 ? 4 : high > 10 ? 2 : .5;
    home.members.forEach((number, i) => {
      const one = rank(number), top = i * high + pad, tall = high - 2 * pad;
      pen.fillStyle = paint.track;
      pen.fillRect(0, top, width, tall);
      let at = one.spans.length - 1;
      while (at > 0 && one.spans[at].from > from) at--;
      for (; at >= 0 && at < one.spans.length; at++) {
        const { from: begin, kind } = one.spans[at], end = one.spans[at + 1]?.from ?? now;
        if (kind === 'none' || end < from) continue;
        const left = Math.max(0, x(begin)), thin = kind === 'dead' || kind === 'rebuilding' ? 1 : 0;
        pen.fillStyle = paint[kind];
        pen.fillRect(left, top, Math.max(x(end) - left, thin), tall);
      }
      for (const at of one.lost) if (at >= from && high > 10) cross(pen, x(at), top + tall / 2, Math.min(3.5, tall / 2), paint);
    });
  }
}
function drawValue(now, paint) {
  const canvas = $('plot'), [width, height] = [canvas.clientWidth, canvas.clientHeight], pen = ready(canvas, width, height);
  const points = series?.points ?? [];
  put($('name'), series ? series.name[0].toUpperCase() + series.name.slice(1) : 'Work over time');
  put($('now'), points.length ? number(points.at(-1)[1]) : '');
  pen.fillStyle = paint.soft;
  if (points.length < 2) {
    const text = 'The program has not said a number yet.';
    return pen.fillText(text, (width - pen.measureText(text).width) / 2, height / 2);
  }
  let [low, high] = points.reduce(([low, high], [, y]) => [Math.min(low, y), Math.max(high, y)], [Infinity, -Infinity]);
  const log = low > 0 && high / low > 50, scale = log ? Math.log10 : y => y;
  [low, high] = [scale(low), scale(high)];
  let rough = Math.max((high - low) / 4, log ? 1 : 1e-300, Math.abs(high) * 1e-9), unit = 10 ** Math.floor(Math.log10(rough));
  unit *= log ? Math.max(1, Math.ceil(rough / unit)) : [1, 2, 5, 10].find(part => part * unit >= rough * .999);
  if (log) unit = Math.max(1, Math.ceil(rough));
  [low, high] = [Math.floor(low / unit) * unit, Math.ceil(high / unit) * unit];
  if (high <= low) high = low + unit;
  const [top, bottom, right] = [8, height - 20, width - 4], labels = [];
  for (let at = low; at <= high + unit / 2; at += unit) labels.push([at, log ? `1e${Math.round(at)}` : number(+at.toPrecision(6))]);
  const left = 8 + Math.max(...labels.map(([, text]) => pen.measureText(text).width));
  const x = at => left + at / Math.max(now, 1e-3) * (right - left), y = at => bottom - (at - low) / (high - low) * (bottom - top);
  pen.textBaseline = 'middle';
  for (const [at, text] of labels) {
    pen.fillStyle = paint.soft;
    pen.fillText(text, left - 8 - pen.measureText(text).width, y(at));
    pen.fillStyle = paint.edge;
    pen.fillRect(left, Math.round(y(at)), right - left, 1);
  }
  pen.textBaseline = 'alphabetic';
  pen.fillStyle = paint.soft;
  for (const at of ticks(0, now, (right - left) / 90)) {
    const text = clock(at, 0), room = pen.measureText(text).width / 2;
    pen.fillText(text, Math.min(x(at) - room, right - 2 * room), height - 4);
  }
  for (const at of losses) {
    pen.globalAlpha = .35;
    pen.fillStyle = paint.bad;
    pen.fillRect(x(at) - .5, top, 1, bottom - top);
    pen.globalAlpha = 1;
    cross(pen, x(at), top + 1, 3.5, paint);
  }
  [pen.strokeStyle, pen.lineWidth] = [paint.line, 1.75];
  pen.lineJoin = 'round';
  pen.beginPath();
  points.forEach(([at, value], i) => { const to = [x(at), y(scale(value))]; if (i) pen.lineTo(...to); else pen.moveTo(...to); });
  pen.stroke();
  const [at, value] = points.at(-1);
  pen.fillStyle = paint.line;
  pen.beginPath();
  pen.arc(x(at), y(scale(value)), 3, 0, 7);
  pen.fill();
}
let drawn = 0;
const calm = matchMedia('(prefers-reduced-motion: reduce)').matches ? 1000 : 50;
function draw(at) {
  requestAnimationFrame(draw);
  if (!job || (!stale && (ended || at - drawn < calm))) return;
  [drawn, stale] = [at, false];
  const paint = Object.fromEntries([...KINDS, 'soft', 'edge', 'track', 'panel', 'bad', 'line'].map(name => [name, color(name)])), now = time();
  put($('clock'), clock(now));
  drawRanks(now, paint);
  drawValue(now, paint);
}

// What is told.
function listen() {
  forget();
  const stream = new EventSource('events' + location.search), on = (name, hear) => stream.addEventListener(name, event => hear(JSON.parse(event.data)));
  on('state', said => {
    job = said;
    const now = said.status.seconds - performance.now() / 1000;
    offset = offset === null || Math.abs(now - offset) > .5 ? now : offset + .1 * (now - offset);
    show();
  });
  on('log', all => all.forEach(({ at, ...what }) => { for (const name in what) heard[name]?.(at, what[name]); }));
  on('series', said => { series = said; });
  on('value', ({ name, points: [point] }) => {
    if (!point) return;
    if (series?.name !== name) series = { name, points: [] };
    if (point[0] > (series.points.at(-1)?.[0] ?? -1)) series.points.push(point);
    if (series.points.length > 2000) series.points = series.points.filter((_, i) => i % 2 === 0);
  });
  on('end', said => {
    stream.close();
    ended = said;
    const good = said.code === 0, mark = good ? 'good' : 'bad', after = job ? ` after ${clock(job.status.seconds)}` : '';
    state(good ? 'done' : `ended with status ${said.code}`, mark);
    document.title = `${good ? 'done' : 'ended'}: ${job ? `job ${job.status.job}` : 'ftrun'}`;
    const { total, recovered } = job?.status.failures ?? { total: 0, recovered: 0 };
    const survived = total ? `, and ${recovered === total ? 'survived' : `survived ${recovered} of`} ${count(total, 'failure')}` : '';
    $('end').textContent = good ? `The job is done${after}${survived}.` : `The job has ended with status ${said.code}${after}${survived}.${said.message ? `\n${said.message}` : ''}`;
    $('end').style.setProperty('--mark', `var(--${mark})`);
    $('end').classList.add('shown');
    tell(job?.status.seconds ?? 0, mark, good ? 'The job is done' : `The job has ended with status ${said.code}`);
    stale = true;
    if (job) show();
  });
  stream.onerror = () => {
    if (ended) return;
    state('no connection', 'bad');
    if (stream.readyState === EventSource.CLOSED) { setTimeout(listen, 3000); }
  };
}
KINDS.forEach(kind => { const one = make('span', $('legend'), 'dot'); one.textContent = kind; one.style.setProperty('--mark', `var(--${kind})`); });
SPANS.forEach(([text, seconds]) => {
  const button = make('button', $('span'));
  button.textContent = text;
  button.setAttribute('aria-pressed', seconds === shown);
  button.onclick = () => {
    shown = seconds;
    for (const one of $('span').children) one.setAttribute('aria-pressed', one === button);
    stale = true;
  };
});
addEventListener('resize', () => { stale = true; });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { stale = true; });
listen();
requestAnimationFrame(draw);
