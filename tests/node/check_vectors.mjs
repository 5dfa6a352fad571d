// Recomputes every vector with viem and with ethers: type hash, domain separator, struct hash,
// digest, recovered signer and the very bytes of the signature.
// Usage: node check_vectors.mjs VECTORS.json  (beside an installed node_modules)
import { readFileSync } from "node:fs";
import { Signature, TypedDataEncoder, Wallet, id, keccak256, toUtf8Bytes, verifyTypedData } from "ethers";
import { hashDomain, hashStruct, hashTypedData, recoverTypedDataAddress } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const file = JSON.parse(readFileSync(process.argv[2], "utf8"));
const key = keccak256(toUtf8Bytes(file.signer_seed));
const wallet = new Wallet(key);
const account = privateKeyToAccount(key);
const domainType = [
  { name: "name", type: "string" },
  { name: "version", type: "string" },
  { name: "chainId", type: "uint256" },
  { name: "verifyingContract", type: "address" },
];

let checks = 0;
let failures = 0;
function same(what, found, expected) {
  checks += 1;
  if (found !== expected) {
    failures += 1;
    console.error(`${what}: found ${found}, expected ${expected}`);
  }
}

same("ethers signer", wallet.address, file.signer);
same("viem signer", account.address, file.signer);
for (const [name, kind] of Object.entries(file.types)) {
  same(`ethers type ${name}`, TypedDataEncoder.from({ [name]: kind.fields }).encodeType(name), kind.encoded);
  same(`ethers type hash ${name}`, id(kind.encoded), kind.type_hash);
}

for (const vector of file.vectors) {
  const { type, domain, message } = vector;
  const label = `${type} (${vector.name})`;
  const types = { [type]: file.types[type].fields };

  same(`ethers separator ${label}`, TypedDataEncoder.hashDomain(domain), vector.domain_separator);
  same(`ethers struct ${label}`, TypedDataEncoder.hashStruct(type, types, message), vector.struct_hash);
  same(`ethers digest ${label}`, TypedDataEncoder.hash(domain, types, message), vector.digest);
  same(`ethers recover ${label}`, verifyTypedData(domain, types, message, vector.signature), file.signer);
  same(`ethers sign ${label}`, await wallet.signTypedData(domain, types, message), vector.signature);
  same(`ethers form ${label}`, Signature.from(vector.signature).serialized, vector.signature);

  const typed = { domain, types, primaryType: type, message };
  const domainTypes = { EIP712Domain: domainType };
  same(`viem separator ${label}`, hashDomain({ domain, types: domainTypes }), vector.domain_separator);
  same(`viem struct ${label}`, hashStruct({ data: message, primaryType: type, types }), vector.struct_hash);
  same(`viem digest ${label}`, hashTypedData(typed), vector.digest);
  same(`viem recover ${label}`, await recoverTypedDataAddress({ ...typed, signature: vector.signature }), file.signer);
  same(`viem sign ${label}`, await account.signTypedData(typed), vector.signature);
}

console.log(JSON.stringify({ vectors: file.vectors.length, checks, failures }));
process.exit(failures === 0 ? 0 : 1);
