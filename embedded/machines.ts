/** The power of the machines that an embedded cloud plays. Cutting it is what it is on a real host: the agent and all
 *  guests of the node are gone at once, without a chance to say so, and nothing starts again before power comes back,
 *  as another boot. */
import { mkdir, readdir, readFile, readlink, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../kit/sys/clock.ts'
import { writeDurably } from '../kit/sys/durable-file.ts'
import { signalProcess } from '../kit/sys/process.ts'
import { newBase62, type Random } from '../kit/sys/random.ts'
import { type BmcSimulator, type Machine, startBmcSimulator } from './bmc-simulator.ts'
import type { DataFolder } from './kit/data-folder.ts'
import { openCertificates } from './kubernetes/server/certificates.ts'
import { probePort } from './kit/ports.ts'
import type { Component } from './supervisor.ts'

const HOST = '127.0.0.1'
const USERNAME = 'svccloud'
const PASSWORD_LENGTH = 32
const KILL_POLL_MILLISECONDS = 20

interface PowerState {
  readonly isOn: boolean
  /** Which start of its power this is; 0 for the first. */
  readonly cycle: number
}

export class EmbeddedMachine implements Machine {
  readonly name: string
  readonly #folder: string
  readonly #file: string
  readonly #clock: Clock
  #state: PowerState
  #agent: Component | undefined
  #pending: Promise<void> = Promise.resolve()

  private constructor(
    name: string,
    options: { readonly folder: string; readonly file: string; readonly clock: Clock; readonly state: PowerState },
  ) {
    this.name = name
    this.#folder = options.folder
    this.#file = options.file
    this.#clock = options.clock
    this.#state = options.state
  }

  /** A machine begins with power; one that had none comes back with another boot. */
  static async open(name: string, folder: DataFolder, clock: Clock): Promise<EmbeddedMachine> {
    const file = join(folder.bmc, `${name}.json`)
    const kept = await readFile(file, 'utf8').then(
      (text) => JSON.parse(text) as PowerState, // this class alone writes it
      (): PowerState => ({ isOn: true, cycle: 0 }),
    )
    const nodeFolder = join(folder.nodes, name)
    await mkdir(nodeFolder, { recursive: true, mode: 0o700 })
    const state = { isOn: true, cycle: kept.isOn ? kept.cycle : kept.cycle + 1 }
    await writeDurably(file, JSON.stringify(state))
    return new EmbeddedMachine(name, { folder: await realpath(nodeFolder), file, clock, state })
  }

  /** The power state that the agent gets, for its boot id. */
  get cycle(): string | undefined {
    return this.#state.cycle === 0 ? undefined : String(this.#state.cycle)
  }

  run(agent: Component): void {
    this.#agent = agent
  }

  isOn(): boolean {
    return this.#state.isOn
  }

  powerOff(): Promise<void> {
    return this.#inOrder(async () => {
      await this.#remember({ ...this.#state, isOn: false })
      await this.#agent?.cut()
      await this.#endGuests()
    })
  }

  powerOn(): Promise<void> {
    return this.#inOrder(async () => {
      if (!this.#state.isOn) await this.#remember({ isOn: true, cycle: this.#state.cycle + 1 })
      this.#agent?.restore()
    })
  }

  /** Runs power requests one after the other. */
  #inOrder(work: () => Promise<void>): Promise<void> {
    const done = this.#pending.then(work)
    this.#pending = done.catch(() => undefined)
    return done
  }

  async #remember(state: PowerState): Promise<void> {
    await writeDurably(this.#file, JSON.stringify(state))
    this.#state = state
  }

  /** Guests are processes that work in a folder of their own below the node's. Looked for until there is none: the
   *  agent may have been about to start one. */
  async #endGuests(): Promise<void> {
    for (;;) {
      const guests = await processesIn(`${this.#folder}/`)
      if (guests.length === 0) return
      for (const pid of guests) signalProcess(pid, 'SIGKILL')
      await this.#clock.sleep(KILL_POLL_MILLISECONDS)
    }
  }
}

async function processesIn(folder: string): Promise<readonly number[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name))
  const folders = await Promise.all(
    pids.map(async (pid) => ({ pid: Number(pid), works: await readlink(`/proc/${pid}/cwd`).catch(() => '') })),
  )
  return folders.filter(({ works }) => works.startsWith(folder)).map(({ pid }) => pid)
}

/** How the platform reaches the controllers of the machines. */
export interface BmcAccess {
  readonly url: string
  readonly username: string
  readonly password: string
  /** PEM. */
  readonly authority: string
}

/** The one controller of all machines. It stays at its port, because nodes are known by its address. */
export async function startMachines(
  machines: readonly Machine[],
  {
    folder,
    clock,
    random,
    print,
  }: {
    readonly folder: DataFolder
    readonly clock: Clock
    readonly random: Random
    readonly print: (line: string) => void
  },
): Promise<{ readonly simulator: BmcSimulator; readonly access: BmcAccess }> {
  const file = join(folder.bmc, 'access.json')
  const kept = await readFile(file, 'utf8').then(
    // written below only
    (text) => JSON.parse(text) as { readonly port: number; readonly password: string },
    () => undefined,
  )
  const { authority, certificate, key } = await openCertificates({ folder: folder.bmc, hosts: [HOST], clock, random })
  const password = kept?.password ?? newBase62(random, PASSWORD_LENGTH)
  const port = await probePort(HOST, kept?.port ?? 0).catch(async () => {
    print(
      `WARNING: port ${kept?.port ?? 0} on ${HOST} is in use, so nodes cannot be powered off where their objects ` +
        'say. Stop what uses it and start again.',
    )
    return probePort(HOST, 0)
  })
  const simulator = await startBmcSimulator({
    host: HOST,
    port,
    certificate,
    key,
    username: USERNAME,
    password,
    machines,
  })
  await writeDurably(
    file,
    JSON.stringify({ url: simulator.url, port: kept?.port ?? simulator.port, username: USERNAME, password }),
  )
  return { simulator, access: { url: simulator.url, username: USERNAME, password, authority } }
}
