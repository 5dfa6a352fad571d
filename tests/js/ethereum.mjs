// Keccak-256, secp256k1 key recovery, EIP-55 and EIP-712, written from their definitions: node:crypto has none of them.

const MASK = (1n << 64n) - 1n;
const rotate = (lane, by) => ((lane << by) | (lane >> (64n - by))) & MASK;

const ROUND_CONSTANTS = [];
const OFFSETS = Array.from({ length: 5 }, () => Array(5).fill(0n));
{
  // FIPS 202, 3.2.5: the constants come from a linear feedback shift register.
  let register = 1;
  for (let round = 0; round < 24; round += 1) {
    let constant = 0n;
    for (let j = 0; j < 7; j += 1) {
      if (register & 1) constant |= 1n << ((1n << BigInt(j)) - 1n);
      register = register & 0x80 ? ((register << 1) ^ 0x171) & 0xff : register << 1;
    }
    ROUND_CONSTANTS.push(constant);
  }
  let [x, y] = [1, 0];
  for (let t = 0n; t < 24n; t += 1n) {
    OFFSETS[x][y] = (((t + 1n) * (t + 2n)) / 2n) % 64n;
    [x, y] = [y, (2 * x + 3 * y) % 5];
  }
}

function permute(a) {
  for (const constant of ROUND_CONSTANTS) {
    const c = a.map((column) => column.reduce((left, right) => left ^ right));
    for (let x = 0; x < 5; x += 1) {
      const d = c[(x + 4) % 5] ^ rotate(c[(x + 1) % 5], 1n);
      for (let y = 0; y < 5; y += 1) a[x][y] ^= d;
    }
    const b = OFFSETS.map((column) => column.slice());
    for (let x = 0; x < 5; x += 1)
      for (let y = 0; y < 5; y += 1)
        b[y][(2 * x + 3 * y) % 5] = OFFSETS[x][y] ? rotate(a[x][y], OFFSETS[x][y]) : a[x][y];
    for (let x = 0; x < 5; x += 1)
      for (let y = 0; y < 5; y += 1)
        a[x][y] = b[x][y] ^ (~b[(x + 1) % 5][y] & MASK & b[(x + 2) % 5][y]);
    a[0][0] ^= constant;
  }
}

export function keccak256(data) {
  const rate = 136;
  const padded = Buffer.alloc((Math.floor(data.length / rate) + 1) * rate);
  Buffer.from(data).copy(padded);
  padded[data.length] ^= 0x01;
  padded[padded.length - 1] ^= 0x80;
  const state = Array.from({ length: 5 }, () => Array(5).fill(0n));
  for (let block = 0; block < padded.length; block += rate) {
    for (let lane = 0; lane < rate / 8; lane += 1)
      state[lane % 5][Math.floor(lane / 5)] ^= padded.readBigUInt64LE(block + 8 * lane);
    permute(state);
  }
  const out = Buffer.alloc(32);
  for (let lane = 0; lane < 4; lane += 1) out.writeBigUInt64LE(state[lane][0], 8 * lane);
  return out;
}

// secp256k1: y^2 = x^3 + 7 over P, a group of prime order N with generator G.
const P = (1n << 256n) - (1n << 32n) - 977n;
const N = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
const G = [
  0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798n,
  0x483ada7726a3c4655da4fbfc0e1108a8fd17b448a68554199c47d08ffb10d4b8n,
];
const mod = (value, by) => ((value % by) + by) % by;

function power(base, exponent, by) {
  let result = 1n;
  for (let bit = exponent, square = mod(base, by); bit; bit >>= 1n) {
    if (bit & 1n) result = (result * square) % by;
    square = (square * square) % by;
  }
  return result;
}

// Euclid's way; far faster here than a power.
function invert(value, by) {
  let [a, b, x, y] = [mod(value, by), by, 1n, 0n];
  while (a > 1n) {
    const quotient = b / a;
    [a, b, x, y] = [b % a, a, y - quotient * x, x];
  }
  return mod(x, by);
}

function add(one, two) {
  if (one === null) return two;
  if (two === null) return one;
  const [x1, y1] = one;
  const [x2, y2] = two;
  if (x1 === x2 && mod(y1 + y2, P) === 0n) return null;
  const slope = x1 === x2 ? 3n * x1 * x1 * invert(2n * y1, P) : (y2 - y1) * invert(mod(x2 - x1, P), P);
  const x = mod(slope * slope - x1 - x2, P);
  return [x, mod(slope * (x1 - x) - y1, P)];
}

// one * first + two * second, in one pass over the bits.
function combine(one, first, two, second) {
  const both = add(first, second);
  let result = null;
  for (let bit = 255n; bit >= 0n; bit -= 1n) {
    result = add(result, result);
    const pick = ((one >> bit) & 1n) + 2n * ((two >> bit) & 1n);
    if (pick) result = add(result, [null, first, second, both][pick]);
  }
  return result;
}

const number = (bytes) => BigInt(`0x${Buffer.from(bytes).toString("hex") || "0"}`);
const word = (value) => Buffer.from(value.toString(16).padStart(64, "0"), "hex");

// The lower-case address whose key made this signature of a digest; throws where there is none.
export function recover(digest, signature) {
  const [r, s, v] = [number(signature.subarray(0, 32)), number(signature.subarray(32, 64)), signature[64]];
  if (v !== 27 && v !== 28) throw new Error("v is not 27 or 28");
  if (s > N / 2n) throw new Error("s is in the upper half");
  if (r === 0n || s === 0n || r >= N) throw new Error("r or s out of range");
  const square = mod(r * r * r + 7n, P);
  let y = power(square, (P + 1n) / 4n, P);
  if ((y * y) % P !== square) throw new Error("recovers no key");
  if ((y & 1n) !== BigInt(v - 27)) y = P - y;
  const inverse = invert(r, N);
  const point = combine(mod(s * inverse, N), [r, y], mod(-number(digest) * inverse, N), G);
  if (point === null) throw new Error("recovers no key");
  return `0x${keccak256(Buffer.concat(point.map(word))).subarray(12).toString("hex")}`;
}

export function checksum(address) {
  const marks = keccak256(Buffer.from(address.slice(2))).toString("hex");
  const digits = [...address.slice(2)].map((digit, at) => (marks[at] >= "8" ? digit.toUpperCase() : digit));
  return `0x${digits.join("")}`;
}

const DOMAIN = "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)";

export function separator(name, version, chainId, contract) {
  return keccak256(
    Buffer.concat([
      keccak256(Buffer.from(DOMAIN)),
      keccak256(Buffer.from(name)),
      keccak256(Buffer.from(version)),
      word(chainId),
      word(BigInt(contract)),
    ]),
  );
}

export function members(type) {
  return type.slice(type.indexOf("(") + 1, -1).split(",").map((member) => member.split(" "));
}

export function digest(domain, type, message) {
  const words = members(type).map(([kind, name]) =>
    kind === "string" ? keccak256(Buffer.from(message[name])) : word(BigInt(message[name])),
  );
  const hash = keccak256(Buffer.concat([keccak256(Buffer.from(type)), ...words]));
  return keccak256(Buffer.concat([Buffer.from([0x19, 0x01]), domain, hash]));
}
