
"use strict";
// Shows the scene beside it: drag turns, the wheel moves nearer and farther. No library, no request.
const scene = JSON.parse(document.getElementById("scene").textContent);
const canvas = document.getElementById("view");
const gl = canvas.getContext("webgl", { alpha: false, antialias: true });
if (!gl) {
  const fault = document.getElementById("fault");
  fault.textContent = "This browser shows no WebGL.";
  fault.hidden = false;
  throw new Error("no WebGL");
}

const color = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16) / 255);
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
const minus = (a, b) => a.map((value, at) => value - b[at]);
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const dot = (a, b) => a.reduce((sum, value, at) => sum + value * b[at], 0);
const unit = (a) => a.map((value) => value / (Math.hypot(...a) || 1));

// Every face has corners of its own, so that it is one even shade.
function corners(solid) {
  const points = new Float32Array(bytes(solid.points));
  const faces = new Uint32Array(bytes(solid.faces));
  const made = new Float32Array(faces.length * 6);
  for (let face = 0; face < faces.length; face += 3) {
    const at = [0, 1, 2].map((n) => Array.from(points.subarray(faces[face + n] * 3, faces[face + n] * 3 + 3)));
    const normal = unit(cross(minus(at[1], at[0]), minus(at[2], at[0])));
    at.forEach((point, n) => made.set([...point, ...normal], (face + n) * 6));
  }
  return made;
}

const LIGHTS = 8;
const lamps = scene.lights.filter((light) => light.kind !== "ambient").slice(0, LIGHTS);
const ambient = scene.lights.filter((light) => light.kind === "ambient");
const floor = [0, 1, 2].map((n) => ambient.reduce((sum, light) => sum + color(light.color)[n] * light.intensity, 0));

function shader(type, source) {
  const made = gl.createShader(type);
  gl.shaderSource(made, source);
  gl.compileShader(made);
  if (!gl.getShaderParameter(made, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(made));
  return made;
}

const program = gl.createProgram();
gl.attachShader(program, shader(gl.VERTEX_SHADER, `
  attribute vec3 point, normal;
  uniform mat4 view;
  varying vec3 place, side;
  void main() { place = point; side = normal; gl_Position = view * vec4(point, 1.0); }
`));
gl.attachShader(program, shader(gl.FRAGMENT_SHADER, `
  precision highp float;
  varying vec3 place, side;
  uniform vec3 eye, base, floorLight, lampPlace[${LIGHTS}], lampLight[${LIGHTS}];
  uniform float lampNear[${LIGHTS}], opacity;
  uniform bool both;
  void main() {
    vec3 normal = normalize(side);
    if (both && dot(normal, eye - place) < 0.0) normal = -normal;
    vec3 light = floorLight;
    for (int n = 0; n < ${LIGHTS}; n++) {
      vec3 way = lampNear[n] > 0.5 ? lampPlace[n] - place : lampPlace[n];
      float fades = lampNear[n] > 0.5 ? 1.0 / max(dot(way, way), 0.01) : 0.3;
      light += lampLight[n] * max(dot(normal, normalize(way)), 0.0) * fades;
    }
    gl_FragColor = vec4(pow(min(pow(base, vec3(2.2)) * light, 1.0), vec3(0.4545)), opacity);
  }
`));
gl.linkProgram(program);
if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
gl.useProgram(program);
const uniform = (name) => gl.getUniformLocation(program, name);

const solids = scene.solids.map((solid) => {
  const data = corners(solid);
  const buffer = gl.createBuffer();
  gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
  gl.bufferData(gl.ARRAY_BUFFER, data, gl.STATIC_DRAW);
  return { buffer, count: data.length / 6, base: color(solid.color), opacity: solid.opacity, both: solid.both };
});
solids.sort((a, b) => b.opacity - a.opacity);

const target = scene.camera.target;
const away = minus(scene.camera.position, target);
let distance = Math.hypot(...away);
let turn = Math.atan2(away[0], away[2]);
let tilt = Math.asin(Math.max(-1, Math.min(1, away[1] / distance)));

function look(eye, ratio) {
  const back = unit(minus(eye, target));
  const right = unit(cross([0, 1, 0], back));
  const up = cross(back, right);
  const f = 1 / Math.tan((scene.camera.fov * Math.PI) / 360);
  const near = distance / 1000;
  const far = distance * 1000;
  const rows = [
    [...right, -dot(right, eye)].map((v) => (v * f) / ratio),
    [...up, -dot(up, eye)].map((v) => v * f),
    [...back, -dot(back, eye)].map((v, n) => v * ((far + near) / (near - far)) + (n === 3 ? (2 * far * near) / (near - far) : 0)),
    [...back, -dot(back, eye)].map((v) => -v),
  ];
  return new Float32Array([0, 1, 2, 3].flatMap((column) => rows.map((row) => row[column])));
}

function draw() {
  canvas.width = canvas.clientWidth * devicePixelRatio;
  canvas.height = canvas.clientHeight * devicePixelRatio;
  gl.viewport(0, 0, canvas.width, canvas.height);
  gl.clearColor(...color(scene.background), 1);
  gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
  gl.enable(gl.DEPTH_TEST);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
  const flat = Math.cos(tilt) * distance;
  const eye = [target[0] + Math.sin(turn) * flat, target[1] + Math.sin(tilt) * distance, target[2] + Math.cos(turn) * flat];
  gl.uniformMatrix4fv(uniform("view"), false, look(eye, canvas.width / canvas.height));
  gl.uniform3fv(uniform("eye"), eye);
  gl.uniform3fv(uniform("floorLight"), floor);
  for (let n = 0; n < LIGHTS; n++) {
    const lamp = lamps[n];
    const light = lamp ? color(lamp.color).map((v) => v * lamp.intensity) : [0, 0, 0];
    gl.uniform3fv(uniform(`lampPlace[${n}]`), lamp ? lamp.position : [0, 1, 0]);
    gl.uniform3fv(uniform(`lampLight[${n}]`), light);
    gl.uniform1f(uniform(`lampNear[${n}]`), lamp && lamp.kind === "point" ? 1 : 0);
  }
  for (const solid of solids) {
    gl.bindBuffer(gl.ARRAY_BUFFER, solid.buffer);
    ["point", "normal"].forEach((name, n) => {
      const at = gl.getAttribLocation(program, name);
      gl.enableVertexAttribArray(at);
      gl.vertexAttribPointer(at, 3, gl.FLOAT, false, 24, n * 12);
    });
    gl.depthMask(solid.opacity === 1);
    gl.uniform3fv(uniform("base"), solid.base);
    gl.uniform1f(uniform("opacity"), solid.opacity);
    gl.uniform1i(uniform("both"), solid.both ? 1 : 0);
    gl.drawArrays(gl.TRIANGLES, 0, solid.count);
  }
  gl.depthMask(true);
}

const again = () => requestAnimationFrame(draw);
canvas.addEventListener("pointermove", (event) => {
  if (!event.buttons) return;
  turn -= event.movementX / 200;
  tilt = Math.max(-1.5, Math.min(1.5, tilt + event.movementY / 200));
  again();
});
canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  distance *= Math.exp(event.deltaY / 1000);
  again();
}, { passive: false });
addEventListener("keydown", (event) => {
  const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
  if (!step) return;
  turn += step[0];
  tilt = Math.max(-1.5, Math.min(1.5, tilt + step[1]));
  again();
});
addEventListener("resize", again);
draw();
