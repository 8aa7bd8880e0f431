import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { StartRefused } from '../../embedded/kit/data-folder.ts'
import { Component } from '../../embedded/supervisor.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { signalProcess } from '../../kit/sys/process.ts'
import { systemRandom } from '../../kit/sys/random.ts'

let folder: string
let said: string[]
const started: Component[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-supervisor-'))
  said = []
})
afterEach(async () => {
  for (const component of started.splice(0)) await component.stop()
  await rm(folder, { recursive: true, force: true })
})

/** A component of which this is the whole program. */
async function component(
  program: string,
  environment: Record<string, string> | (() => Promise<Record<string, string>>) = {},
): Promise<Component> {
  const file = join(folder, 'main.mjs')
  await writeFile(file, program)
  const made = new Component(
    {
      name: 'example',
      file,
      environment: typeof environment === 'function' ? environment : async () => environment,
      logFile: join(folder, 'example.log'),
    },
    {
      clock: systemClock,
      random: systemRandom,
      print: (line) => void said.push(line),
      onProcessesChanged: () => undefined,
    },
  )
  started.push(made)
  return made
}

const SERVES =
  `process.send({ ready: true, greeting: process.env.GREETING, pid: process.pid }); process.on('disconnect', () => ` +
  'process.exit())'
const isAlive = (pid: number) => signalProcess(pid, 0)

it('answers the first ready message and hands over the environment', async () => {
  const example = await component(SERVES, { GREETING: 'good morning' })
  const ready = await example.start()
  expect(ready).toMatchObject({ ready: true, greeting: 'good morning', pid: example.process?.pid })
})

it('knows where the metrics of the child are', async () => {
  const example = await component(`${SERVES}; process.send({ ready: true, metrics_url: 'http://127.0.0.1:1/metrics' })`)
  await example.start()
  await expect.poll(() => example.process).toMatchObject({ name: 'example', metricsUrl: 'http://127.0.0.1:1/metrics' })
})

it('starts a killed child again and says so', async () => {
  const example = await component(SERVES)
  const { pid } = await example.start()
  signalProcess(Number(pid), 'SIGKILL')
  await expect.poll(() => example.process?.pid ?? pid).not.toBe(pid)
  expect(said).toEqual([expect.stringMatching(/^example ended with SIGKILL; starting it again/)])
})

it('continues when what a start needs cannot be written, and says why', async () => {
  let asked = 0
  const example = await component(SERVES, async () => {
    asked++
    if (asked === 2 || asked === 3) throw new Error('ENOSPC: no space left on device, write')
    return {}
  })
  const { pid } = await example.start()
  signalProcess(Number(pid), 'SIGKILL')
  await expect.poll(() => asked).toBe(4)
  await expect.poll(() => example.process?.pid ?? pid).not.toBe(pid)
  expect(said.filter((line) => line.includes('ENOSPC'))).toHaveLength(2)
})

it('is refused when the first start never gets that far', async () => {
  const example = await component(SERVES, () => Promise.reject(new Error('EIO: i/o error')))
  await expect(example.start()).rejects.toThrow('EIO')
})

it('starts nothing between a cut and its restoring, and says nothing of it', async () => {
  const example = await component(SERVES)
  const { pid } = await example.start()
  await example.cut()
  expect([isAlive(Number(pid)), example.process]).toEqual([false, undefined])
  await example.cut() // free
  example.restore()
  await expect.poll(() => example.process?.pid ?? pid).not.toBe(pid)
  expect(said).toEqual([])
})

it('stops while it is cut', async () => {
  const example = await component(SERVES)
  await example.start()
  await example.cut()
  await example.stop()
  expect(example.process).toBeUndefined()
})

it('stops the child, also one that does not listen to SIGTERM at first', async () => {
  const example = await component(`${SERVES}; process.on('SIGTERM', () => setTimeout(() => process.exit(), 50))`)
  const { pid } = await example.start()
  await example.stop()
  expect(isAlive(Number(pid))).toBe(false)
  expect(example.process).toBeUndefined()
})

it('gives up on a child that never gets ready, in one line with what it said last', async () => {
  const example = await component(`console.error('the port is taken'); process.exit(3)`)
  const refusal: unknown = await example.start().catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(StartRefused)
  expect(String(refusal)).toBe(
    'Error: example did not start: it ended with exit code 3 (the port is taken). ' +
      `Its log says more: ${example.logFile}`,
  )
})

it('hands on the sentence of a child that cannot start, and does not try again', async () => {
  const example = await component(
    `console.error('tried'); process.send({ refused: 'Choose another folder.' }, () => process.exit(1))`,
  )
  const refusal: unknown = await example.start().catch((error: unknown) => error)
  expect(refusal).toBeInstanceOf(StartRefused)
  expect(String(refusal)).toBe('Error: Choose another folder.')
  expect(await readFile(example.logFile, 'utf8')).toBe('tried\n')
})

it('keeps the output of every life in one log', async () => {
  const example = await component(`console.error('hello from', process.pid); ${SERVES}`)
  const { pid } = await example.start()
  signalProcess(Number(pid), 'SIGKILL')
  await expect.poll(async () => (await readFile(example.logFile, 'utf8')).match(/hello from/g)).toHaveLength(2)
})
