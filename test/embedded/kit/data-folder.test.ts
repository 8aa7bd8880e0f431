import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defined } from '../../../domain/defined.ts'
import {
  diskFault,
  endLeftovers,
  lockDataFolder,
  prepareDataFolder,
  recordProcesses,
  startTicksOf,
  StartRefused,
} from '../../../embedded/kit/data-folder.ts'
import { type Clock, systemClock } from '../../../kit/sys/clock.ts'
import { isRoot, nodeBinary, signalProcess } from '../../../kit/sys/process.ts'

let root: string
const children: ChildProcess[] = []

beforeEach(async () => void (root = await mkdtemp(join(tmpdir(), 'svccloud-data-'))))
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await chmod(root, 0o700)
  await rm(root, { recursive: true, force: true })
})

/** Runs a separate program and answers once it has printed something. */
async function running(program: string): Promise<ChildProcess & { readonly pid: number }> {
  const child = spawn(nodeBinary(), ['--input-type=module', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  if (child.stdout === null || child.pid === undefined) throw new Error('the program did not start')
  await once(child.stdout, 'data')
  return Object.assign(child, { pid: child.pid })
}

describe('the folder', () => {
  it('is made with its parts, for its owner only', async () => {
    const folder = await prepareDataFolder(join(root, 'new'))
    for (const part of [folder.mail, folder.logs, folder.kubernetes])
      expect((await stat(part)).mode & 0o777).toBe(0o700)
  })

  it('is refused when it is a file', async () => {
    await writeFile(join(root, 'file'), '')
    await expect(prepareDataFolder(join(root, 'file'))).rejects.toThrow(/is not a folder/)
  })

  it.each(['/proc/svccloud', '/proc/1/fd/svccloud/data'])(
    'is refused in %s, where nothing can be made',
    async (path) => {
      await expect(prepareDataFolder(path)).rejects.toThrow(
        /^The folder \/proc\/\S+ cannot be (made there|written by this user)\. Choose another: npm start -- --data/,
      )
    },
  )

  it('is refused on a disk without room, in a sentence that says what to do', async () => {
    expect(await diskFault(root, 1)).toBeUndefined()
    expect(await diskFault(root, Number.MAX_SAFE_INTEGER)).toMatch(
      /^The disk of \S+ is full: \d+ MiB are free\. What is stored is whole; free some space and start again, /,
    )
  })

  it('is refused without permission', async () => {
    await chmod(root, 0o555)
    // Root may write everywhere, so it plays an ordinary user here.
    if (isRoot()) process.seteuid?.(65_534)
    try {
      const refusal: unknown = await prepareDataFolder(join(root, 'new')).catch((error: unknown) => error)
      expect(refusal).toBeInstanceOf(StartRefused)
      expect(String(refusal)).toMatch(/cannot be written by this user/)
    } finally {
      if (process.getuid?.() === 0) process.seteuid?.(0)
    }
  })
})

describe('the lock', () => {
  const MODULE = join(import.meta.dirname, '../../../embedded/kit/data-folder.ts')
  const lockingProgram = () => `
    const { lockDataFolder } = await import(${JSON.stringify(MODULE)})
    globalThis.lock = lockDataFolder(${JSON.stringify(root)})
    console.log('locked')
    setInterval(() => {}, 1000)`

  it('keeps a second one out with one clear line, until it is given back', () => {
    const lock = lockDataFolder(root)
    expect(() => lockDataFolder(root)).toThrow(`The folder ${root} is in use by another svccloud.`)
    lock.release()
    lockDataFolder(root).release()
  })

  it('goes with its holder, however that ends', async () => {
    const holder = await running(lockingProgram())
    expect(() => lockDataFolder(root)).toThrow(StartRefused)
    holder.kill('SIGKILL')
    await once(holder, 'exit')
    lockDataFolder(root).release()
  })
})

describe('what an earlier run left', () => {
  const deaf = `process.on('SIGTERM', () => {}); console.log('up'); setInterval(() => {}, 1000)`
  /** Lets ten seconds pass with every wait. */
  const hurriedClock = (): Clock => {
    let elapsed = 0
    return {
      ...systemClock,
      monotonicMilliseconds: () => elapsed,
      sleep: (milliseconds) => ((elapsed += 10_000), systemClock.sleep(milliseconds)),
    }
  }

  it('is ended when it does not end by itself', async () => {
    const folder = await prepareDataFolder(root)
    const child = await running(deaf)
    const startTicks = await startTicksOf(child.pid)
    await recordProcesses(folder, [{ name: 'deaf', pid: child.pid, ...defined({ startTicks }) }])
    const exited = once(child, 'exit')
    await endLeftovers(folder, hurriedClock())
    expect(await exited).toEqual([null, 'SIGKILL'])
  })

  it('never ends a stranger who got the same process id', async () => {
    const folder = await prepareDataFolder(root)
    const child = await running(deaf)
    await recordProcesses(folder, [{ name: 'gone', pid: child.pid, startTicks: '1' }])
    await endLeftovers(folder, hurriedClock())
    expect(signalProcess(child.pid, 0)).toBe(true)
  })

  it('is known at every moment, also while it is being rewritten', async () => {
    const folder = await prepareDataFolder(root)
    const records = [{ name: 'postgres', pid: 1 }]
    await recordProcesses(folder, records)
    let isOver = false
    const writing = (async () => {
      for (let times = 0; times < 100; times++) await recordProcesses(folder, records)
      isOver = true
    })()
    while (!isOver) expect(JSON.parse(await readFile(folder.processesFile, 'utf8'))).toEqual(records)
    await writing
  })

  it('survives a file that is no record', async () => {
    const folder = await prepareDataFolder(root)
    await writeFile(folder.processesFile, '[{"name":"x","pi')
    await endLeftovers(folder, hurriedClock())
  })
})
