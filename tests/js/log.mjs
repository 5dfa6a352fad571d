// Trees, notes, checkpoints, proofs and key tables (docs/spec/log.md).

import { createHash, createPublicKey, verify } from "node:crypto";
import { address, demand, exactly, integer, list, parseCanonical, string } from "./text.mjs";

export const sha256 = (...parts) => createHash("sha256").update(Buffer.concat(parts)).digest();
export const leafHash = (data) => sha256(Buffer.from([0]), Buffer.from(data));
const nodeHash = (left, right) => sha256(Buffer.from([1]), left, right);
export const entryLeaf = (kind, entry) => `offpeak/${kind}@v1 ${sha256(Buffer.from(entry)).toString("hex")}\n`;
const LARGEST_TREE = 2n ** 62n;

// RFC 9162, section 2.1.3.2.
export function verifyInclusion(leaf, index, size, proof, root) {
  demand(index < size && size <= LARGEST_TREE, "no such leaf");
  let [found, place, last] = [leaf, index, size - 1n];
  for (const sibling of proof) {
    demand(last > 0n, "a proof that is too long");
    if (place & 1n || place === last) {
      found = nodeHash(sibling, found);
      while (!(place & 1n) && place > 0n) [place, last] = [place >> 1n, last >> 1n];
    } else {
      found = nodeHash(found, sibling);
    }
    [place, last] = [place >> 1n, last >> 1n];
  }
  demand(last === 0n, "a proof that is too short");
  demand(found.equals(root), "a proof that leads to another root");
}

export function base64(text) {
  const raw = Buffer.from(text, "base64");
  demand(raw.toString("base64") === text, "not base64 in its one form");
  return raw;
}

export function keyName(name) {
  const length = [...name].length;
  demand(length > 0 && length <= 255 && !/[+\p{C}\p{Z}]/u.test(name), "not a name");
  return name;
}

export function verifierKey(text) {
  const match = /^([^+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/.exec(string(text));
  demand(match !== null, "not a verifier key");
  const raw = base64(match[3]);
  demand(raw.length === 33 && (raw[0] === 1 || raw[0] === 4), "not a key of a known type");
  const id = sha256(Buffer.from(`${keyName(match[1])}\n`), raw).subarray(0, 4).toString("hex");
  demand(id === match[2], "an id that is not the key's");
  return { text, name: match[1], id, type: raw[0], raw: raw.subarray(1) };
}

export function ed25519(key, message, signature) {
  try {
    const der = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), key]);
    return verify(null, message, createPublicKey({ key: der, format: "der", type: "spki" }), signature);
  } catch {
    return false;
  }
}

export function note(text) {
  const data = Buffer.from(string(text));
  demand(data.length <= 1_000_000, "a note that is too long");
  demand(!/[\x00-\x09\x0b-\x1f]/.test(text), "a control character");
  const end = text.lastIndexOf("\n\n");
  demand(end > 0 && text.endsWith("\n") && end + 2 < text.length, "no text, empty line and signatures");
  const lines = text.slice(end + 2, -1).split("\n");
  demand(lines.length <= 64, "too many signatures");
  const signatures = lines.map((line) => {
    const match = /^\u2014 ([^ ]+) ([A-Za-z0-9+/=]+)$/.exec(line);
    demand(match !== null, "a signature line of another form");
    const raw = base64(match[2]);
    demand(raw.length > 4, "a signature without bytes");
    return { name: keyName(match[1]), id: raw.subarray(0, 4).toString("hex"), signature: raw.subarray(4) };
  });
  return { text: text.slice(0, end + 1), signatures };
}

// Which of the known keys signed, as their texts; a false line of a known key is refused.
export function signers({ text, signatures }, known) {
  const keys = new Map();
  for (const key of known) {
    const before = keys.get(`${key.name}+${key.id}`);
    demand(before === undefined || before.text === key.text, "two keys with one name and id");
    keys.set(`${key.name}+${key.id}`, key);
  }
  const found = new Set();
  for (const line of signatures) {
    const key = keys.get(`${line.name}+${line.id}`);
    if (key === undefined || found.has(key.text)) continue;
    let [signature, signed] = [line.signature, text];
    if (key.type === 4) {
      demand(signature.length === 72, "a cosignature of another length");
      const time = signature.readBigUInt64BE(0);
      demand(time < 2n ** 63n, "a time out of range");
      signature = signature.subarray(8);
      signed = `cosignature/v1\ntime ${time}\n${text}`;
    }
    demand(signature.length === 64 && ed25519(key.raw, Buffer.from(signed), signature), "a false signature");
    found.add(key.text);
  }
  return found;
}

export function checkpoint({ text }) {
  const [origin, size, root, ...rest] = text.split("\n");
  demand(rest.length === 1 && root !== undefined, "not three lines");
  const raw = base64(root);
  demand(raw.length === 32, "not a root");
  return { origin: keyName(origin), size: integer(size, LARGEST_TREE), root: raw };
}

export function logProof(text) {
  demand(string(text).length <= 1_000_000, "a proof that is too long");
  const end = text.indexOf("\n\n");
  demand(end > 0, "no empty line");
  const [first, index, ...hashes] = text.slice(0, end).split("\n");
  demand(first === "c2sp.org/tlog-proof@v1" && index?.startsWith("index "), "not a proof with an index");
  const raw = hashes.map(base64);
  demand(raw.length <= 63 && raw.every((each) => each.length === 32), "not at most 63 hashes");
  return { index: integer(index.slice(6), LARGEST_TREE), hashes: raw, checkpoint: text.slice(end + 2) };
}

function logKey(value, origin) {
  exactly(value, ["role", "key", "from", "until"]);
  demand(value.role === "checkpoint" || value.role === "record", "an unknown role");
  const from = integer(value.from);
  const until = value.until === null ? null : integer(value.until);
  demand(until === null || until > from, "a key that ends before it begins");
  if (value.role === "record") return { role: value.role, key: address(value.key), from, until };
  const verifier = verifierKey(value.key);
  demand(verifier.type === 1 && verifier.name === origin, "not a key of this log");
  return { role: value.role, key: value.key, verifier, from, until };
}

export const counts = (key, place) => key.from <= place && (key.until === null || place < key.until);
export const checkpointKey = (table, size) =>
  table.keys.find((key) => key.role === "checkpoint" && counts(key, size))?.verifier;

export function keyTable({ text }) {
  const lines = text.split("\n");
  demand(lines.length === 4 && lines[0] === "offpeak/key-rotation@v1", "not a key table");
  const origin = keyName(lines[1]);
  const value = exactly(parseCanonical(lines[2]), ["version", "keys"]);
  demand(value.version === "1", "another version");
  const keys = list(value.keys, 64).map((key) => logKey(key, origin));
  demand(new Set(keys.map((key) => `${key.role} ${key.key}`)).size === keys.length, "a key twice");
  const signing = keys.filter((key) => key.role === "checkpoint");
  signing.forEach((key, at) => demand(at === 0 || signing[at - 1].until === key.from, "a gap or an overlap"));
  return { origin, keys };
}

// The table after a rotation at an index, believed as "Key rotation", rules 3 to 5, says.
export function follow(before, entry, index, trusted) {
  const parsed = note(entry);
  const table = keyTable(parsed);
  const needed = [checkpointKey(table, index + 1n)];
  demand(needed[0] !== undefined, "no checkpoint key for the next size");
  if (before !== null) {
    needed.push(checkpointKey(before, index));
    demand(needed[1] !== undefined, "a table that is final");
    demand(before.origin === table.origin && before.keys.length <= table.keys.length, "another log, or a key less");
    before.keys.forEach((was, at) => {
      const now = table.keys[at];
      demand(was.role === now.role && was.key === now.key && was.from === now.from, "a key has changed");
      demand(was.until === now.until || (was.until === null && now.until > index), "an end has changed");
    });
    demand(table.keys.slice(before.keys.length).every((key) => key.from > index), "a new key in the past");
  }
  const found = signers(parsed, [...needed, ...trusted]);
  demand(needed.every((key) => found.has(key.text)), "not signed by old and new key");
  demand(before !== null || trusted.some((key) => found.has(key.text)), "signed by nobody trusted");
  return table;
}

