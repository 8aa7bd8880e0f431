import { expect, it } from 'vitest'
import type { Guest, GuestDefinition, Hypervisor } from '../../../agents/node/drivers/hypervisor/hypervisor.ts'
import { newSimulatedHost } from '../../../agents/node/drivers/hypervisor/simulated.ts'
import { newSimulatedNetwork } from '../../../agents/node/drivers/hypervisor/simulated-network.ts'
import { openTcpTransport } from '../../../agents/node/drivers/hypervisor/simulated-tcp.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { Scheduler, SimulatedProcess } from '../../sim/scheduler.ts'
import { eventually } from '../../eventually.ts'
import { hypervisorContract } from './hypervisor-contract.ts'
import { moveContract } from './move-contract.ts'

const definitionOf = (name: string, incarnation: number): GuestDefinition => ({
  name,
  uid: 'uid-1',
  incarnation,
  hostname: 'web-1',
  cores: 1,
  memoryMebibytes: 128,
  boot: { kernel: '/k', initialRamdisk: '/i', commandLine: '' },
  disks: [{ path: '/d', serial: 'd' }],
  interfaces: [],
  forwardedPorts: [],
  seed: Buffer.alloc(0),
})

function openTime(seed: number) {
  const scheduler = new Scheduler(seed)
  const machine = new SimulatedProcess('host', scheduler)
  machine.begin()
  const until = async (isTrue: () => boolean) => {
    // In small steps: what is looked at asynchronously is seen after the events that changed it.
    for (
      const deadline = scheduler.nowMilliseconds + 60_000;
      !isTrue();
      await scheduler.runUntil(scheduler.nowMilliseconds + 5, isTrue)
    ) {
      if (scheduler.nowMilliseconds > deadline) throw new Error('did not come true within a virtual minute')
    }
  }
  return {
    scheduler,
    clock: machine.clock(),
    until,
    async settled<T>(promise: Promise<T>): Promise<T> {
      let isOver = false
      const end = () => void (isOver = true)
      promise.then(end, end)
      await until(() => isOver)
      return promise
    },
    close: async () => {},
  }
}

hypervisorContract(async () => {
  const { scheduler, clock, ...time } = openTime(1)
  const host = newSimulatedHost({ clock, random: scheduler.random })
  return {
    ...time,
    attach: async () => host.attach(),
    definition: async (name, incarnation) => definitionOf(name, incarnation),
    disk: async () => ({ path: '/data', serial: 'data', slot: 1 }),
    killGuest: async (name) => host.crashGuest(name),
  }
})

function openPair(seed: number) {
  const { scheduler, clock, ...time } = openTime(seed)
  const network = newSimulatedNetwork()
  const hosts = ['alpha', 'beta'].map((name) => newSimulatedHost({ clock, random: scheduler.random, network, name }))
  const [alpha, beta] = hosts
  if (alpha === undefined || beta === undefined) throw new Error('unreachable')
  return { ...time, scheduler, network, alpha, beta }
}

moveContract(async () => {
  const { alpha, beta, scheduler: _scheduler, network: _network, ...time } = openPair(2)
  const hostOf = (host: typeof alpha) => ({
    attach: async () => host.attach(),
    definition: async (name: string) => definitionOf(name, 1),
    killGuest: async (name: string) => host.crashGuest(name),
  })
  return { ...time, hosts: [hostOf(alpha), hostOf(beta)] }
})

it('runs on at most one host at every instant, with any fault at any time', async () => {
  const reached = new Set<string>()
  for (let seed = 0; seed < 300; seed++) {
    const { alpha, beta, network, scheduler, settled } = openPair(seed)
    let [source, target] = [alpha.attach(), beta.attach()]
    const name = 'g'
    await settled(source.start(definitionOf(name, 1)))
    const life = alpha.running()[0]?.executionId
    const reception = { id: 'op', attempt: 1, key: 'k', mirroredDisks: seed % 2 === 0 ? [] : [0] }
    const { port = 0, host = '' } = (await settled(target.receive(definitionOf(name, 1), reception))).transfer ?? {}
    await settled(
      source.send(name, {
        ...reception,
        host,
        port,
        downtimeLimitMilliseconds: 500,
        isThrottled: false,
        timeoutSeconds: 30,
      }),
    )
    const faults = [
      () => alpha.crashGuest(name),
      () => beta.crashGuest(name),
      () => void source.cancelSend(name).catch(() => {}),
      () => network.cut('alpha'),
      () => network.mend('alpha'),
      () => network.cut('beta'),
      () => void source.close(),
      () => void target.close(),
      () => {
        source = alpha.attach()
        void source.inspect(name)
      },
      () => {
        target = beta.attach()
        void target.inspect(name)
      },
      () => alpha.reboot(),
      () => alpha.powerOffGuest(name),
    ]
    for (let fault = 0; fault < 3; fault++)
      scheduler.after(
        scheduler.random.fraction() * 1_500,
        faults[Math.floor(scheduler.random.fraction() * faults.length)] ?? (() => {}),
      )
    await scheduler.runUntil(
      scheduler.nowMilliseconds + 60_000,
      () => false,
      () => {
        const copies = [...alpha.running(), ...beta.running()]
        expect(copies.length, `seed ${seed}`).toBeLessThanOrEqual(1)
        if (copies.length === 1) expect(copies[0]?.executionId).toBe(life)
      },
    )
    const ends = await Promise.all(
      [alpha, beta].map(async (each) => (await settled(each.attach().inspect(name)))?.state),
    )
    reached.add(ends.join(' '))
  }
  // The faults really met the move at every stage.
  for (const end of ['handed_over running', 'running gone', 'gone gone']) expect([...reached]).toContain(end)
})

it('may be lost with the network at the instant of the hand-over, and then runs nowhere', async () => {
  const { alpha, beta, network, scheduler, settled } = openPair(1)
  const [source, target] = [alpha.attach(), beta.attach()]
  await settled(source.start(definitionOf('g', 1)))
  const reception = { id: 'op', attempt: 1, key: 'k', mirroredDisks: [] }
  const { port = 0, host = '' } = (await settled(target.receive(definitionOf('g', 1), reception))).transfer ?? {}
  await settled(
    source.send('g', {
      ...reception,
      host,
      port,
      downtimeLimitMilliseconds: 500,
      isThrottled: false,
      timeoutSeconds: 30,
    }),
  )
  await scheduler.runUntil(scheduler.nowMilliseconds + 60_000, () => alpha.running().length === 0)
  network.cut('beta')
  await scheduler.runUntil(scheduler.nowMilliseconds + 60_000)
  expect([alpha.running(), beta.running()]).toEqual([[], []])
  expect([(await settled(source.inspect('g')))?.state, (await settled(target.inspect('g')))?.state]).toEqual([
    'handed_over',
    'receiving',
  ])
})

it('is no longer sent once it has powered itself off', async () => {
  const { alpha, beta, settled, until } = openPair(5)
  const [source, target] = [alpha.attach(), beta.attach()]
  await settled(source.start(definitionOf('g', 1)))
  const reception = { id: 'op', attempt: 1, key: 'k', mirroredDisks: [] }
  const { port = 0, host = '' } = (await settled(target.receive(definitionOf('g', 1), reception))).transfer ?? {}
  await settled(
    source.send('g', {
      ...reception,
      host,
      port,
      downtimeLimitMilliseconds: 500,
      isThrottled: false,
      timeoutSeconds: 30,
    }),
  )
  alpha.powerOffGuest('g')
  expect(await settled(source.inspect('g'))).toMatchObject({
    state: 'off',
    transfer: { role: 'send', attempt: 1, phase: 'failed' },
  })
  let isLost = false
  await until(() => {
    void target.inspect('g').then((guest) => (isLost = guest?.state === 'gone'))
    return isLost
  })
})

it('hands a busy guest over only within the downtime that was allowed', async () => {
  const { alpha, beta, settled, until } = openPair(4)
  const [source, target] = [alpha.attach(), beta.attach()]
  await settled(source.start(definitionOf('g', 1)))
  alpha.keepGuestBusy('g', 1_000)
  const order = { id: 'op', key: 'k', mirroredDisks: [], isThrottled: false, timeoutSeconds: 10 }
  const { port = 0, host = '' } =
    (await settled(target.receive(definitionOf('g', 1), { ...order, attempt: 1 }))).transfer ?? {}
  await settled(source.send('g', { ...order, attempt: 1, host, port, downtimeLimitMilliseconds: 300 }))
  let guest: Guest | undefined
  const look = () => void source.inspect('g').then((found) => (guest = found))
  await until(() => (look(), guest?.transfer?.phase === 'failed'))
  expect(guest).toMatchObject({ state: 'running', transfer: { detail: 'not done in time' } })
  await settled(target.destroy('g'))
  const again = (await settled(target.receive(definitionOf('g', 1), { ...order, attempt: 2 }))).transfer
  await settled(
    source.send('g', { ...order, attempt: 2, host, port: again?.port ?? 0, downtimeLimitMilliseconds: 2_000 }),
  )
  await until(() => beta.running().length === 1)
})

it('goes over TCP between hosts of different processes', async () => {
  const clock = systemClock
  const patiently = (isTrue: () => boolean) => eventually('it', () => isTrue() || undefined)
  const [alpha, beta] = await Promise.all(
    ['alpha', 'beta'].map(async () =>
      newSimulatedHost({
        clock,
        random: systemRandom,
        name: '127.0.0.1',
        network: await openTcpTransport('127.0.0.1'),
      }),
    ),
  )
  if (alpha === undefined || beta === undefined) throw new Error('unreachable')
  const [source, target] = [alpha.attach(), beta.attach()]
  await source.start(definitionOf('g', 1))
  const life = alpha.running()[0]?.executionId
  const order = { id: 'op', mirroredDisks: [], downtimeLimitMilliseconds: 500, isThrottled: false, timeoutSeconds: 30 }
  const awaitGuest = async (attempt: number, key = 'k') => {
    const { host = '', port = 0 } =
      (await target.receive(definitionOf('g', 1), { id: 'op', attempt, key, mirroredDisks: [] })).transfer ?? {}
    return { ...order, attempt, host, port }
  }
  await source.send('g', { ...(await awaitGuest(1, 'another')), key: 'k' })
  let guest: Guest | undefined
  const look = (hypervisor: Hypervisor) => void hypervisor.inspect('g').then((found) => (guest = found))
  await patiently(() => (look(source), guest?.transfer?.phase === 'failed'))
  await target.destroy('g')

  const sending = { ...(await awaitGuest(2)), key: 'k' }
  await source.send('g', sending)
  beta.crashGuest('g')
  await patiently(() => (look(source), guest?.transfer?.attempt === 2 && guest.transfer.phase === 'failed'))
  await target.destroy('g')

  await source.send('g', { ...(await awaitGuest(3)), key: 'k' })
  await patiently(() => beta.running().length === 1)
  expect([alpha.running(), beta.running()[0]?.executionId]).toEqual([[], life])

  // A sender that dies takes the connection with it.
  await source.forget('g')
  const { host = '', port = 0 } =
    (await source.receive(definitionOf('g', 1), { id: 'op-2', attempt: 1, key: 'k', mirroredDisks: [] })).transfer ?? {}
  await target.send('g', { ...order, id: 'op-2', attempt: 1, key: 'k', host, port })
  await patiently(() => (look(target), guest?.transfer?.id === 'op-2' && guest.transfer.iteration > 0))
  beta.crashGuest('g')
  await patiently(() => (look(source), guest?.state === 'gone' || guest?.state === 'running'))
})
