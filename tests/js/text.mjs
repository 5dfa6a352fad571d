// Strict JSON, its RFC 8785 form, and the forms of members (docs/spec/log.md, "Texts that are signed or hashed").

import { checksum } from "./ethereum.mjs";

export class Refused extends Error {}

export function demand(holds, reason) {
  if (!holds) throw new Refused(reason);
}

export function utf8(bytes) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Refused("not UTF-8");
  }
}

const TOKEN = /[\t\n\r ]*(?:([[\]{},:])|("(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9][0-9]*)(?![0-9.eE]))|(true|false|null))/y;
const MAX_DEPTH = 16;

// The value of a JSON text whose numbers are small integers; an object is a Map-like null-prototype object.
export function parse(text) {
  let at = 0;
  const next = () => {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    demand(match !== null, "not JSON, or a number that is no integer");
    at = TOKEN.lastIndex;
    return match;
  };
  const value = (match, depth) => {
    const [, sign, string, digits, word] = match;
    if (string !== undefined) return JSON.parse(string);
    if (digits !== undefined) {
      const number = Number(digits);
      demand(digits !== "-0" && Number.isSafeInteger(number), "a number out of range");
      return number;
    }
    if (word !== undefined) return JSON.parse(word);
    demand((sign === "[" || sign === "{") && depth < MAX_DEPTH, "not JSON, or nested too deeply");
    return sign === "[" ? list(depth + 1) : object(depth + 1);
  };
  const list = (depth) => {
    const found = [];
    let match = next();
    if (match[1] === "]") return found;
    for (;;) {
      found.push(value(match, depth));
      match = next();
      if (match[1] === "]") return found;
      demand(match[1] === ",", "not JSON");
      match = next();
    }
  };
  const object = (depth) => {
    const found = Object.create(null);
    let match = next();
    if (match[1] === "}") return found;
    for (;;) {
      demand(match[2] !== undefined, "not JSON");
      const name = JSON.parse(match[2]);
      demand(!(name in found), "a member twice");
      demand(next()[1] === ":", "not JSON");
      found[name] = value(next(), depth);
      match = next();
      if (match[1] === "}") return found;
      demand(match[1] === ",", "not JSON");
      match = next();
    }
  };
  const found = value(next(), 0);
  demand(/^[\t\n\r ]*$/.test(text.slice(at)), "more than one JSON value");
  demand(isObject(found), "not an object");
  return found;
}

export const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

// RFC 8785 is defined by what ECMAScript writes, with members sorted.
export function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (!isObject(value)) {
    demand(typeof value !== "string" || value.isWellFormed(), "a lone surrogate");
    return JSON.stringify(value);
  }
  const parts = Object.keys(value).sort().map((name) => `${canonical(name)}:${canonical(value[name])}`);
  return `{${parts.join(",")}}`;
}

export function parseCanonical(text) {
  const value = parse(text);
  demand(canonical(value) === text, "not in its RFC 8785 form");
  return value;
}

export function exactly(value, names) {
  demand(isObject(value), "not an object");
  demand(Object.keys(value).sort().join() === [...names].sort().join(), "a member is missing or more");
  return value;
}

export function string(value) {
  demand(typeof value === "string" && value.isWellFormed(), "not a text");
  return value;
}

export function integer(value, limit = 2n ** 63n - 1n) {
  demand(/^(?:0|[1-9][0-9]{0,77})$/.test(string(value)), "not a decimal string");
  demand(BigInt(value) <= limit, "a number above its limit");
  return BigInt(value);
}

export function hex(value, length) {
  demand(/^0x(?:[0-9a-f]{2})*$/.test(string(value)) && value.length === 2 + 2 * length, "not 0x and so many digits");
  return Buffer.from(value.slice(2), "hex");
}

export function list(value, limit) {
  demand(Array.isArray(value) && value.length <= limit, "not a list, or a longer one");
  return value;
}

export function address(value) {
  demand(/^0x[0-9a-fA-F]{40}$/.test(string(value)), "not an address");
  demand(value === checksum(value.toLowerCase()), "not in EIP-55 form");
  return value.toLowerCase();
}
