/** A disk that is full for a while, for real: a small file system in memory, which takes the rights of root. */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { Component } from '../../embedded/supervisor.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import { signalProcess } from '../../kit/sys/process.ts'
import { newUuid, systemRandom } from '../../kit/sys/random.ts'

const run = promisify(execFile)
let folder: string
let disk: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-full-disk-'))
  disk = join(folder, 'disk')
  await mkdir(disk)
  await run('mount', ['-t', 'tmpfs', '-o', 'size=4m', 'none', disk])
})
afterEach(async () => {
  await run('umount', [disk])
  await rm(folder, { recursive: true, force: true })
})

it('ends no supervisor: stopped programs are back soon after there is space', async () => {
  const file = join(folder, 'main.mjs')
  await writeFile(file, `process.send({ ready: true }); process.on('disconnect', () => process.exit())`)
  const leader = join(disk, 'leader')
  const said: string[] = []
  const component = new Component(
    {
      name: 'example',
      file,
      // as the identity of the controllers is handed over
      environment: async () => {
        await writeDurably(leader, newUuid(systemRandom))
        return {}
      },
      logFile: join(disk, 'example.log'),
    },
    {
      clock: systemClock,
      random: systemRandom,
      print: (line) => void said.push(line),
      onProcessesChanged: () => undefined,
    },
  )
  await component.start()
  const first = component.process?.pid ?? 0
  const identity = await readFile(leader, 'utf8')

  const filler = join(disk, 'filler')
  await expect(writeFile(filler, Buffer.alloc(16 * 1024 ** 2))).rejects.toThrow('ENOSPC')
  signalProcess(first, 'SIGKILL')
  await expect.poll(() => said.some((line) => line.includes('is full'))).toBe(true)
  expect([component.process, await readFile(leader, 'utf8')]).toEqual([undefined, identity])

  await rm(filler)
  await expect.poll(() => component.process?.pid ?? first).not.toBe(first)
  expect(await readFile(leader, 'utf8')).not.toBe(identity)
  await component.stop()
})
