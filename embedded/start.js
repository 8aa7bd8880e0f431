/** `npm start`: says so clearly when this Node is too old to run TypeScript, then starts embedded/up.ts. Plain
 *  JavaScript, so that
 *  every Node can read it. npm itself brings Node 24 on Linux, whatever the host's own Node is. */
import { keepCompiled } from '../kit/sys/compile-cache.js'

const MAJOR_MINIMUM = 24

if (Number(process.versions.node.split('.')[0]) < MAJOR_MINIMUM) {
  process.stderr.write(
    `svccloud needs Node ${MAJOR_MINIMUM} or newer; this is ${process.version}. Start it with "npm start" after ` +
      `"npm ci", or install Node ${MAJOR_MINIMUM}.\n`,
  )
  process.exitCode = 1
} else {
  keepCompiled()
  const { main } = await import('./up.ts')
  await main()
}
