// A wallet of viem's: deposits in each way, signs a withdrawal, and reads what the contract says.
// Usage: node wallet.mjs GIVEN.json  (beside an installed node_modules); prints what it did as JSON.
// Nothing of ours runs here: the types are written out as docs/spec states them.
import { readFileSync } from "node:fs";
import { createPublicClient, createWalletClient, defineChain, encodeAbiParameters, http, keccak256, parseAbi, parseSignature } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const given = JSON.parse(readFileSync(process.argv[2], "utf8"));
const account = privateKeyToAccount(given.key);
const chain = defineChain({
  id: given.chainId,
  name: "development",
  nativeCurrency: { name: "Coin", symbol: "COIN", decimals: 18 },
  rpcUrls: { default: { http: [given.url] } },
});
const reader = createPublicClient({ chain, transport: http(given.url), pollingInterval: 20 });
const wallet = createWalletClient({ account, chain, transport: http(given.url) });
const treasury = {
  address: given.treasury,
  abi: parseAbi([
    "function deposit(address beneficiary, uint256 amount, bytes32 ref)",
    "function depositWithPermit(address payer, uint256 amount, bytes32 ref, uint256 deadline, uint8 v, bytes32 r, bytes32 s)",
    "function depositWithAuthorization(address payer, address beneficiary, uint256 amount, bytes32 ref, uint256 validAfter, uint256 validBefore, uint8 v, bytes32 r, bytes32 s)",
    "function available(address payer) view returns (uint256)",
  ]),
};
const token = {
  address: given.token,
  abi: parseAbi([
    "function approve(address spender, uint256 amount) returns (bool)",
    "function nonces(address owner) view returns (uint256)",
    "function name() view returns (string)",
    "function version() view returns (string)",
  ]),
};
const amount = BigInt(given.amount);
const deadline = BigInt(given.deadline);
const tokenDomain = {
  name: await reader.readContract({ ...token, functionName: "name" }),
  version: await reader.readContract({ ...token, functionName: "version" }),
  chainId: given.chainId,
  verifyingContract: given.token,
};

async function send(contract, functionName, args) {
  const hash = await wallet.writeContract({ ...contract, functionName, args });
  const receipt = await reader.waitForTransactionReceipt({ hash });
  if (receipt.status !== "success") throw new Error(`${functionName} reverted`);
  return { hash, block: Number(receipt.blockNumber) };
}

const signed = {};
async function sign(primaryType, fields, domain, message) {
  const types = { [primaryType]: fields.map((field) => ({ type: field.split(" ")[0], name: field.split(" ")[1] })) };
  signed[primaryType] = await account.signTypedData({ domain, types, primaryType, message });
  return parseSignature(signed[primaryType]);
}

// EIP-3009: the nonce binds who is credited.
const ref = `0x${"a1".repeat(32)}`;
const nonce = keccak256(encodeAbiParameters([{ type: "address" }, { type: "bytes32" }], [account.address, ref]));
const drawn = await sign(
  "ReceiveWithAuthorization",
  ["address from", "address to", "uint256 value", "uint256 validAfter", "uint256 validBefore", "bytes32 nonce"],
  tokenDomain,
  { from: account.address, to: given.treasury, value: amount, validAfter: 0n, validBefore: deadline, nonce },
);
const deposits = [
  await send(treasury, "depositWithAuthorization", [
    account.address, account.address, amount, ref, 0n, deadline, Number(drawn.v), drawn.r, drawn.s,
  ]),
];
// EIP-2612
const permitNonce = await reader.readContract({ ...token, functionName: "nonces", args: [account.address] });
const permit = await sign(
  "Permit",
  ["address owner", "address spender", "uint256 value", "uint256 nonce", "uint256 deadline"],
  tokenDomain,
  { owner: account.address, spender: given.treasury, value: amount, nonce: permitNonce, deadline },
);
deposits.push(
  await send(treasury, "depositWithPermit", [
    account.address, amount, `0x${"a2".repeat(32)}`, deadline, Number(permit.v), permit.r, permit.s,
  ]),
);
// and by approval
await send(token, "approve", [given.treasury, amount]);
deposits.push(await send(treasury, "deposit", [account.address, amount, `0x${"a3".repeat(32)}`]));

const withdrawal = { ...given.withdrawal, payer: account.address };
await sign(
  "Withdrawal",
  ["address payer", "address token", "uint256 amount", "uint256 maxFee", "bytes32 nonce", "uint64 deadline"],
  { name: "OFFPEAK", version: "1", chainId: given.chainId, verifyingContract: given.treasury },
  { ...withdrawal, amount: BigInt(withdrawal.amount), maxFee: BigInt(withdrawal.maxFee), deadline: BigInt(withdrawal.deadline) },
);
const available = await reader.readContract({ ...treasury, functionName: "available", args: [account.address] });
console.log(JSON.stringify({ address: account.address, deposits, signed, withdrawal, available: String(available) }));
