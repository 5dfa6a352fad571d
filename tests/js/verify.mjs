// A verifier of OFFPEAK receipts, written from docs/spec/ alone; node's own modules only.
// For each line {"receipt", "policy"} of paths on standard input it prints {"exit", "step", "reason"}.

import { readFileSync } from "node:fs";
import { checksum, digest, members, recover, separator } from "./ethereum.mjs";
import {
  checkpoint, checkpointKey, counts, ed25519, entryLeaf, follow, leafHash, logProof, note, sha256, signers,
  verifierKey, verifyInclusion,
} from "./log.mjs";
import { address, demand, exactly, hex, integer, list, parse, parseCanonical, Refused, string, utf8 } from "./text.mjs";

const RECORD =
  "UsageRecord(uint16 version,bytes32 recordId,bytes32 quoteDigest,bytes32 acceptDigest,bytes32 supplierStatement,address payer,uint64 payerSeq,bytes32 prevPayerRecord,bytes32 modelRevision,uint64 inputTokens,uint64 cachedInputTokens,uint64 outputTokens,uint64 reasoningTokens,uint128 inputRateNano,uint128 outputRateNano,uint128 perRequestNano,address asset,uint256 heldNano,uint256 chargeNano,uint256 releasedNano,uint8 outcome,bytes32 correctsRecord,bytes32 requestCommit,bytes32 responseCommit,uint64 completedAt,uint64 includeBy,bytes32 salt)";
const QUOTE =
  "Quote(bytes32 quoteId,address payer,string model,bytes32 modelRevision,string region,bytes32 requestDigest,uint32 inputTokens,uint32 maxOutputTokens,uint128 inputRateNano,uint128 outputRateNano,uint128 perRequestNano,address token,uint256 maxChargeNano,uint128 askNano,uint32 loadPpm,uint64 pricePointAt,uint32 curveVersion,uint32 runSeconds,uint64 issuedAt,uint64 expiresAt)";
const ACCEPTANCE =
  "RequestAuthorization(address payer,bytes32 delegation,bytes32 quoteDigest,bytes32 requestDigest,string model,uint32 maxOutputTokens,address token,uint256 maxChargeNano,uint64 validAfter,uint64 deadline,bytes32 nonce)";
const STATEMENT = [
  "lease", "job", "request_digest", "response_digest", "input_tokens", "cached_input_tokens", "output_tokens", "finish",
  "release_fingerprint",
];
const HEADER = [
  "version", "number", "start", "end", "count", "records_root", "sums", "first_at", "last_at", "key_id", "previous_header",
];
const ANCHOR = ["chain_id", "contract", "size", "root", "tx_hash", "block_number", "block_hash", "log_index"];
const PARTS = ["format", "record", "quote", "acceptance", "supplier", "batch", "log_proof", "keys", "anchor", "opening"];
const ZERO = `0x${"00".repeat(32)}`;

const tagged = (tag, ...parts) => `0x${sha256(Buffer.from(`${tag}\n`), ...parts).toString("hex")}`;
const bytes = (text) => Buffer.from(text.slice(2), "hex");
const within = (value, limit, what) => demand(value <= limit, `${what} above its limit`);
const same = (one, two, what) => demand(one === two, `${what} differs`);

// Policy

class Unusable extends Error {}

function parsePolicy(text) {
  const policy = { keys: [], witnesses: new Map(), groups: new Map(), pins: new Set(), retired: new Map(), quorum: "none" };
  const statements = {
    log: (key) => policy.keys.push(verifierKey(key)),
    domain: (chainId, anchor, treasury) => {
      [policy.chainId, policy.anchor] = [BigInt(chainId), address(anchor)];
      policy.records = separator("OFFPEAK UsageRecord", "1", BigInt(chainId), address(anchor));
      policy.wallets = separator("OFFPEAK", "1", BigInt(chainId), address(treasury));
    },
    witness: (name, key) => policy.witnesses.set(name, verifierKey(key)),
    group: (name, threshold, ...of) =>
      policy.groups.set(name, { of, needs: { all: of.length, any: 1 }[threshold] ?? Number(threshold) }),
    quorum: (name) => (policy.quorum = name),
    "record-key": (key) => policy.pins.add(key.toLowerCase()),
    retired: (key, place) => policy.retired.set(key.startsWith("0x") ? key.toLowerCase() : key, BigInt(place)),
    contract: (at) => (policy.contract = at.toLowerCase()),
  };
  for (const line of text.split("\n")) {
    const [kind, ...words] = line.split(/[ \t]+/).filter((each) => each !== "");
    if (kind === undefined || kind.startsWith("#")) continue;
    if (!Object.hasOwn(statements, kind)) throw new Unusable(`statement ${kind}`);
    statements[kind](...words);
  }
  if (policy.keys.length === 0 || policy.records === undefined) throw new Unusable("no log or no domain");
  policy.origin = policy.keys[0].name;
  policy.isRetired = (key, place) => policy.retired.has(key) && place >= policy.retired.get(key);
  policy.holds = (name, found) => {
    if (policy.witnesses.has(name)) return found.has(policy.witnesses.get(name).text);
    const group = policy.groups.get(name);
    return group.of.filter((each) => policy.holds(each, found)).length >= group.needs;
  };
  return policy;
}

// Parts of a receipt, each read to its form

function signedMessage(value) {
  exactly(value, ["message", "signature"]);
  return { message: string(value.message), signature: hex(value.signature, 65) };
}

function accepted(value) {
  if (!Object.hasOwn(Object(value), "contract_check")) return { ...signedMessage(value), check: null };
  exactly(value, ["message", "signature", "contract_check"]);
  demand(/^0x(?:[0-9a-f]{2}){0,4096}$/.test(string(value.signature)), "not 0x and at most 4,096 bytes");
  const check = exactly(value.contract_check, ["method", "block_number", "block_hash"]);
  demand(["erc-1271", "erc-6492"].includes(string(check.method)), "another method");
  integer(check.block_number);
  hex(check.block_hash, 32);
  return { message: string(value.message), signature: bytes(value.signature), check };
}

function anchored(value) {
  const given = exactly(value, ANCHOR);
  const anchor = { chainId: integer(given.chain_id, 2n ** 53n - 1n), contract: address(given.contract) };
  for (const name of ["size", "block_number", "log_index"]) anchor[name] = integer(given[name]);
  for (const name of ["root", "tx_hash", "block_hash"]) anchor[name] = hex(given[name], 32);
  return anchor;
}

function form(data) {
  demand(data.length <= 4_000_000, "a file that is too large");
  const given = exactly(parse(utf8(data)), PARTS);
  demand(given.format === "offpeak/receipt@v1", "another format");
  demand((given.batch === null) === (given.log_proof === null), "batch and log_proof are not there together");
  demand(given.anchor === null || given.batch !== null, "an anchor without a batch");
  const receipt = { supplier: null, batch: null, proof: null, opening: null, anchor: null };
  for (const part of ["record", "quote"]) receipt[part] = signedMessage(given[part]);
  receipt.acceptance = accepted(given.acceptance);
  if (given.anchor !== null) receipt.anchor = anchored(given.anchor);
  if (given.supplier !== null) {
    const { statement, signature, public_key: key } = exactly(given.supplier, ["statement", "signature", "public_key"]);
    receipt.supplier = { statement: string(statement), signature: hex(signature, 64), key: hex(key, 32) };
  }
  if (given.batch !== null) {
    const { header, index, proof } = exactly(given.batch, ["header", "index", "proof"]);
    const hashes = list(proof, 32).map((each) => hex(each, 32));
    receipt.batch = { header: string(header), index: integer(index), proof: hashes };
    receipt.proof = logProof(given.log_proof);
  }
  receipt.keys = list(given.keys, 64).map((each) => {
    exactly(each, ["entry", "log_proof"]);
    return { entry: string(each.entry), proof: logProof(each.log_proof) };
  });
  if (given.opening !== null) {
    const { request, request_salt: salt, answer } = exactly(given.opening, ["request", "request_salt", "answer"]);
    receipt.opening = { request: string(request), salt: hex(salt, 32), answer: null };
    if (answer !== null) {
      exactly(answer, ["content", "finish_reason"]);
      receipt.opening.answer = { content: string(answer.content), finish: string(answer.finish_reason) };
    }
  }
  return receipt;
}

// An EIP-712 message from its own RFC 8785 text; integers become BigInt, the rest stays text.
function typedMessage(type, text) {
  const given = exactly(parseCanonical(text), members(type).map(([, name]) => name));
  return Object.fromEntries(
    members(type).map(([kind, name]) => {
      const value = given[name];
      if (kind === "address") return [name, address(value)];
      if (kind === "bytes32") return [name, `0x${hex(value, 32).toString("hex")}`];
      if (kind !== "string") return [name, integer(value, 2n ** BigInt(kind.slice(4)) - 1n)];
      demand(Buffer.byteLength(string(value)) <= 1024, "a text that is too long");
      return [name, value];
    }),
  );
}

function readHeader(text) {
  const given = exactly(parseCanonical(text), HEADER);
  const header = { key_id: string(given.key_id), previous: hex(given.previous_header, 32) };
  for (const name of ["version", "number", "start", "end", "count", "first_at", "last_at"])
    header[name] = integer(given[name]);
  header.root = hex(given.records_root, 32);
  header.sums = list(given.sums, 64).map((sum) => {
    exactly(sum, ["asset", "charge_nano", "held_nano", "released_nano"]);
    const [charge, held, released] = ["charge_nano", "held_nano", "released_nano"].map((name) => integer(sum[name]));
    demand(held === charge + released, "a sum that does not add up");
    return { asset: address(sum.asset), charge, held, released };
  });
  const { version, start, end, count, sums } = header;
  demand(version === 1n && start < end && count === end - start && count <= 1_000_000n, "another version or count");
  demand(sums.length > 0 && header.first_at <= header.last_at, "no sums, or times out of order");
  demand(sums.every((sum, at) => at === 0 || sums[at - 1].asset < sum.asset), "sums out of order");
  demand(/^[0-9a-f]{8}$/.test(header.key_id), "not a key id");
  demand((start === 0n) === header.previous.equals(Buffer.alloc(32)), "not the header before");
  return header;
}

// The steps, in the page's order; each may refuse. `c` is the case: what earlier steps have found.

const STEPS = {
  form: (c) => (c.receipt = form(c.data)),

  keys(c) {
    let last = -1n;
    c.table = null;
    for (const { entry, proof } of c.receipt.keys) {
      demand(proof.index > last, "key entries out of order");
      last = proof.index;
      const trusted = c.policy.keys.filter((key) => !c.policy.isRetired(key.text, proof.index));
      if (c.table === null && signers(note(entry), trusted).size === 0) continue;
      const before = c.table && checkpointKey(c.table, proof.index);
      demand(!before || !c.policy.isRetired(before.text, proof.index), "a retired key");
      c.table = follow(c.table, entry, proof.index, trusted);
      demand(c.table.origin === c.policy.origin, "keys of another log");
    }
    demand(c.table !== null || c.receipt.keys.length === 0, "no key entry that a trusted key has signed");
  },

  checkpoint(c) {
    const proofs = [...c.receipt.keys.map((key) => key.proof), ...(c.receipt.proof ? [c.receipt.proof] : [])];
    c.head = null;
    if (proofs.length === 0) return;
    demand(new Set(proofs.map((proof) => proof.checkpoint)).size === 1, "two checkpoints");
    const parsed = note(proofs[0].checkpoint);
    const head = checkpoint(parsed);
    demand(head.origin === c.policy.origin, "another log");
    const named = c.table === null ? c.policy.keys : [checkpointKey(c.table, head.size)];
    const counting = named.filter((key) => key !== undefined && !c.policy.isRetired(key.text, head.size));
    c.signers = signers(parsed, [...counting, ...c.policy.witnesses.values()]);
    demand(counting.some((key) => c.signers.has(key.text)), "not signed by a key that counts");
    c.head = head;
  },

  witnesses(c) {
    if (c.policy.quorum === "none" || c.head === null) return;
    demand(c.policy.holds(c.policy.quorum, c.signers), "no quorum of witnesses");
  },

  "key-entries"(c) {
    for (const { entry, proof } of c.head === null ? [] : c.receipt.keys)
      verifyInclusion(leafHash(entryLeaf("key-rotation", entry)), proof.index, c.head.size, proof.hashes, c.head.root);
  },

  record(c) {
    c.record = typedMessage(RECORD, c.receipt.record.message);
    demand(c.record.version === 1n && c.record.outcome >= 1n && c.record.outcome <= 4n, "another version or outcome");
    c.digest = digest(c.policy.records, RECORD, c.record);
    c.place = c.receipt.proof?.index ?? c.head?.size ?? (c.policy.pins.size > 0 ? 0n : null);
  },

  "record-signature": (c) => requireKey(c, c.digest, c.receipt.record.signature, counts),

  arithmetic({ record: r }) {
    within(r.chargeNano, r.heldNano, "charge");
    same(r.heldNano, r.chargeNano + r.releasedNano, "held and charge + released");
    within(r.cachedInputTokens, r.inputTokens, "cached");
    within(r.reasoningTokens, r.outputTokens, "reasoning");
    same(r.outcome === 4n, r.correctsRecord !== ZERO, "outcome and correction");
    const parts = r.perRequestNano * 10n ** 6n + r.inputTokens * r.inputRateNano + r.outputTokens * r.outputRateNano;
    const metered = parts / 10n ** 6n < r.heldNano ? parts / 10n ** 6n : r.heldNano;
    if (r.outcome === 1n || (r.outcome === 3n && r.chargeNano > 0n)) same(r.chargeNano, metered, "charge");
    if (r.outcome === 2n) same(r.chargeNano, 0n, "the charge of a failed job");
    demand(r.payerSeq >= 1n && (r.payerSeq === 1n) === (r.prevPayerRecord === ZERO), "a wrong place in the history");
    demand(r.recordId !== r.prevPayerRecord && r.recordId !== r.correctsRecord, "a record that names itself");
    within(r.completedAt, r.includeBy, "completedAt");
  },

  quote(c) {
    const [r, q] = [c.record, (c.quote = typedMessage(QUOTE, c.receipt.quote.message))];
    c.quoteDigest = digest(c.policy.wallets, QUOTE, q);
    same(r.quoteDigest, `0x${c.quoteDigest.toString("hex")}`, "quoteDigest");
    for (const name of ["payer", "modelRevision", "inputRateNano", "outputRateNano", "perRequestNano"])
      same(r[name], q[name], name);
    same(r.asset, q.token, "asset");
    within(r.inputTokens, q.inputTokens, "inputTokens");
    within(r.outputTokens, q.maxOutputTokens, "outputTokens");
    within(r.heldNano, q.maxChargeNano, "heldNano");
    same(r.requestCommit, tagged("offpeak/request-commit@v1", bytes(r.salt), bytes(q.requestDigest)), "requestCommit");
  },

  "quote-signature": (c) =>
    requireKey(c, c.quoteDigest, c.receipt.quote.signature, (key, place) => key.from <= place),

  acceptance(c) {
    const [r, q, a] = [c.record, c.quote, (c.acceptance = typedMessage(ACCEPTANCE, c.receipt.acceptance.message))];
    c.acceptDigest = digest(c.policy.wallets, ACCEPTANCE, a);
    same(r.acceptDigest, `0x${c.acceptDigest.toString("hex")}`, "acceptDigest");
    same(a.quoteDigest, r.quoteDigest, "quoteDigest");
    for (const name of ["requestDigest", "payer", "model", "maxOutputTokens", "token", "maxChargeNano"])
      same(a[name], q[name], name);
    same(a.delegation, ZERO, "delegation");
    within(r.chargeNano, a.maxChargeNano, "chargeNano");
    within(r.heldNano, a.maxChargeNano, "heldNano");
  },

  // of a contract wallet only the chain can say
  "acceptance-signature"(c) {
    if (c.receipt.acceptance.check !== null) return;
    same(signer(c.acceptDigest, c.receipt.acceptance.signature), c.record.payer, "payer");
  },

  statement(c) {
    const [r, part] = [c.record, c.receipt.supplier];
    if (part === null) return same(r.supplierStatement, ZERO, "supplierStatement");
    const s = exactly(parseCanonical(part.statement), STATEMENT);
    for (const name of ["lease", "job"])
      demand(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(string(s[name])), "not a UUID");
    for (const name of ["finish", "release_fingerprint"]) string(s[name]);
    const tokens = Object.fromEntries(STATEMENT.filter((each) => each.endsWith("tokens")).map((n) => [n, integer(s[n])]));
    c.statement = Buffer.from(`offpeak/supplier-statement@v1\n${part.statement}`);
    same(r.supplierStatement, `0x${sha256(c.statement).toString("hex")}`, "supplierStatement");
    const job = `0x${"00".repeat(16)}${s.job.replaceAll("-", "")}`;
    if (r.outcome !== 4n) same(job, r.recordId, "job");
    hex(s.request_digest, 32);
    same(s.request_digest, c.quote.requestDigest, "request_digest");
    same(r.responseCommit, commitment(r, hex(s.response_digest, 32)), "responseCommit");
    within(r.inputTokens, tokens.input_tokens, "inputTokens");
    within(r.outputTokens, tokens.output_tokens, "outputTokens");
  },

  "statement-signature"(c) {
    const part = c.receipt.supplier;
    if (part !== null) demand(ed25519(part.key, c.statement, part.signature), "not the agent's signature");
  },

  opening(c) {
    const opening = c.receipt.opening;
    if (opening === null) return;
    const request = tagged("offpeak/request@v1", opening.salt, Buffer.from(opening.request));
    same(request, c.quote.requestDigest, "request");
    if (opening.answer === null) return;
    const { finish, content } = opening.answer;
    const answer = tagged("offpeak/answer@v1", Buffer.from(`${finish}\n${content}`));
    same(commitment(c.record, bytes(answer)), c.record.responseCommit, "answer");
  },

  batch(c) {
    const part = c.receipt.batch;
    if (part === null) return;
    c.header = readHeader(part.header);
    const signature = sha256(c.receipt.record.signature).toString("hex");
    const leaf = leafHash(`offpeak/usage-record@v1 ${c.digest.toString("hex")} ${signature}\n`);
    verifyInclusion(leaf, part.index, c.header.count, part.proof, c.header.root);
  },

  header(c) {
    if (c.receipt.batch === null) return;
    const [r, h, index] = [c.record, c.header, c.receipt.proof.index];
    demand(h.first_at <= r.completedAt && r.completedAt <= h.last_at, "completed outside of the batch");
    const sum = h.sums.find((each) => each.asset === r.asset);
    demand(sum !== undefined, "no sum for the asset");
    const own = [r.chargeNano, r.heldNano, r.releasedNano];
    const all = [sum.charge, sum.held, sum.released];
    demand(own.every((each, at) => each <= all[at]), "an amount above its sum");
    if (h.count === 1n) demand(h.sums.length === 1 && own.every((each, at) => each === all[at]), "sums of another");
    demand(h.number < index && h.number <= h.start, "a number that cannot be at this index");
    const key = c.table && checkpointKey(c.table, index + 1n);
    if (key) same(key.id, h.key_id, "key_id");
  },

  log(c) {
    if (c.receipt.batch === null) return;
    const { index, hashes } = c.receipt.proof;
    verifyInclusion(leafHash(entryLeaf("batch-header", c.receipt.batch.header)), index, c.head.size, hashes, c.head.root);
  },

  anchor({ receipt: { anchor }, policy, head }) {
    if (anchor === null) return;
    same(anchor.chainId, policy.chainId, "the anchor's chain");
    same(anchor.contract, policy.contract ?? policy.anchor, "the anchor's contract");
    demand(anchor.size === head.size && anchor.root.equals(head.root), "an anchor of another checkpoint");
  },
};

const commitment = (record, answer) => tagged("offpeak/response-commit@v1", bytes(record.salt), answer);

function signer(hash, signature) {
  try {
    return recover(hash, signature);
  } catch (error) {
    throw new Refused(error.message);
  }
}

function requireKey({ place, policy, table }, hash, signature, inForce) {
  const found = signer(hash, signature);
  if (place === null) return;
  demand(policy.pins.size === 0 || policy.pins.has(found), "a key that is not pinned");
  demand(!policy.isRetired(found, place), "a retired key");
  demand(table !== null || policy.pins.size > 0, "no table and no pin");
  if (table === null) return;
  const named = table.keys.some((key) => key.role === "record" && key.key === found && inForce(key, place));
  demand(named, `${checksum(found)} is no record key at ${place}`);
}

export function verifyReceipt(data, policy) {
  const found = { data, policy: parsePolicy(policy) };
  for (const [step, check] of Object.entries(STEPS)) {
    try {
      check(found);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      return { exit: 1, step, reason: error.message };
    }
  }
  const { batch, acceptance } = found.receipt;
  return { exit: batch === null ? 2 : acceptance.check !== null ? 5 : 0, step: null, reason: "" };
}

for (const line of readFileSync(0, "utf-8").split("\n").filter(Boolean)) {
  const { receipt, policy } = JSON.parse(line);
  console.log(JSON.stringify(verifyReceipt(readFileSync(receipt), readFileSync(policy, "utf-8"))));
}
