#!/usr/bin/env node
// Lets forge compile with the npm package `solc`, which is JavaScript: forge asks a compiler only
// for its version and for one job of standard JSON, from standard input to standard output.
"use strict";

const asked = new Set(process.argv.slice(2));

function main() {
  if (asked.has("--version")) {
    // From the package's own description: to load the compiler only for this takes half a second.
    console.log(`solc, the Solidity compiler\nVersion: ${require("solc/package.json").version}`);
    return 0;
  }
  if (asked.has("--standard-json")) {
    const job = require("node:fs").readFileSync(0, "utf8");
    process.stdout.write(require("solc").compile(job));
    return 0;
  }
  console.error(`solc.cjs knows --version and --standard-json, not: ${[...asked].join(" ")}`);
  return 1;
}

process.exitCode = main();
