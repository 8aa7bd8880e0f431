/** Builds the portal unless it is built from the same sources already: `npm run portal:build`. One build at a time, and
 *  the built folder is replaced as a whole, so that a reader of it sees the stamp change. */
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { build } from 'vite'
import { systemClock } from '../../kit/sys/clock.ts'
import { tryLock } from '../../kit/sys/file-lock.ts'
import { answerHelp } from '../../kit/sys/help.ts'
import { setEnvironment } from '../../kit/sys/process.ts'
import { BUILT, builtDigest, inputsDigest, STAMP } from './stamp.ts'

answerHelp(import.meta.filename)
// Whoever starts it may have another one, a test for example: libraries are twice as large then.
setEnvironment('NODE_ENV', 'production')

const LOOK_MILLISECONDS = 200

/** Waits for a build in progress. */
async function lock(): Promise<() => void> {
  for (;;) {
    const release = tryLock(`${BUILT}.lock`)
    if (release !== undefined) return release
    await systemClock.sleep(LOOK_MILLISECONDS)
  }
}

/** There is none before the first build. */
function exceptMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'ENOENT') throw error
}

const release = await lock()
try {
  const digest = await inputsDigest()
  if ((await builtDigest(BUILT)) !== digest) {
    const [next, previous] = [`${BUILT}.next`, `${BUILT}.previous`]
    await build({
      configFile: join(import.meta.dirname, 'vite.config.ts'),
      configLoader: 'native',
      logLevel: 'warn',
      build: { outDir: next },
    })
    await writeFile(join(next, STAMP), digest)
    await rm(previous, { recursive: true, force: true })
    await rename(BUILT, previous).catch(exceptMissing)
    await rename(next, BUILT)
    await rm(previous, { recursive: true, force: true })
  }
} finally {
  release()
}
