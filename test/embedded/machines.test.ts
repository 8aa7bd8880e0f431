/** Power of the machines that an embedded cloud plays: cut for real, and kept over restarts. */
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type DataFolder, layout, prepareDataFolder } from '../../embedded/kit/data-folder.ts'
import { EmbeddedMachine, startMachines } from '../../embedded/machines.ts'
import { Component } from '../../embedded/supervisor.ts'
import { systemClock } from '../../kit/sys/clock.ts'
import { signalProcess } from '../../kit/sys/process.ts'
import { systemRandom } from '../../kit/sys/random.ts'

let root: string
let folder: DataFolder
const started: Component[] = []

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'machines-'))
  folder = await prepareDataFolder(root)
})
afterEach(async () => {
  for (const component of started.splice(0)) await component.stop()
  await rm(root, { recursive: true, force: true })
})

const open = (name = 'node-1') => EmbeddedMachine.open(name, folder, systemClock)
const isAlive = (pid: number | undefined) => pid !== undefined && signalProcess(pid, 0)

/** An agent that is nothing but a process. */
async function agentOf(machine: EmbeddedMachine): Promise<Component> {
  const file = join(root, 'agent.mjs')
  await writeFile(
    file,
    `process.send({ ready: true, cycle: process.env.CYCLE }); process.on('disconnect', () => process.exit())`,
  )
  const agent = new Component(
    { name: 'agent', file, environment: async () => ({ CYCLE: machine.cycle }), logFile: join(root, 'agent.log') },
    { clock: systemClock, random: systemRandom, print: () => undefined, onProcessesChanged: () => undefined },
  )
  started.push(agent)
  machine.run(agent)
  await agent.start()
  return agent
}

/** A process that works where guests of the node do. */
async function guestOf(name: string) {
  const cwd = join(layout(root).nodes, name, 'guests', 'g1')
  await mkdir(cwd, { recursive: true })
  return spawn('sleep', ['600'], { cwd, stdio: 'ignore', detached: true })
}

it('takes the agent and the guests of its own node with it, and comes back as another boot', async () => {
  const machine = await open()
  const agent = await agentOf(machine)
  const [own, other] = [await guestOf('node-1'), await guestOf('node-2')]
  const agentPid = agent.process?.pid
  try {
    expect(machine.cycle).toBeUndefined()
    await machine.powerOff()
    expect([machine.isOn(), isAlive(agentPid), agent.process]).toEqual([false, false, undefined])
    await expect.poll(() => own.signalCode).toBe('SIGKILL')
    expect(isAlive(other.pid)).toBe(true)
    await machine.powerOff() // free
    await machine.powerOn()
    expect([machine.isOn(), machine.cycle]).toEqual([true, '1'])
    await expect.poll(() => agent.process?.pid).toBeDefined()
    await machine.powerOn() // free
    expect(machine.cycle).toBe('1')
  } finally {
    for (const guest of [own, other]) guest.kill('SIGKILL')
  }
})

it('remembers its boots, and one that had no power starts another', async () => {
  const first = await open()
  await first.powerOff()
  await first.powerOn()
  expect((await open()).cycle).toBe('1')
  await (await open()).powerOff()
  const next = await open()
  expect([next.isOn(), next.cycle]).toEqual([true, '2'])
})

it('is switched at the same address with the same password from start to start', async () => {
  const options = { folder, clock: systemClock, random: systemRandom, print: () => undefined }
  const first = await startMachines([await open()], options)
  await first.simulator.stop()
  const second = await startMachines([await open()], options)
  await second.simulator.stop()
  expect(second.access).toEqual(first.access)
})
