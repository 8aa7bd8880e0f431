/** The power of the machines that an embedded cloud simulates. As on a real host, cutting the power ends the agent and
 *  all guests of the node at once, without any notice. Nothing starts again before the power returns, as another boot.
 */
import { mkdir, readdir, readFile, readlink, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../kit/sys/clock.ts'
import { writeDurably } from '../kit/sys/durable-file.ts'
import { signalProcess } from '../kit/sys/process.ts'
import { newBase62, type Random } from '../kit/sys/random.ts'
import { type BmcSimulator, type SimulatedMachine, startBmcSimulator } from './bmc-simulator.ts'
import type { DataFolder } from './kit/data-folder.ts'
import { openCertificates } from './kubernetes/server/certificates.ts'
import { probePort } from './kit/ports.ts'
import type { Component } from './supervisor.ts'
import { Mutex } from '../kit/sys/mutex.ts'

const HOST = '127.0.0.1'
const USERNAME = 'svccloud'
const PASSWORD_LENGTH = 32
const KILL_POLL_MILLISECONDS = 20

interface PowerState {
  readonly isOn: boolean
  /** Number of the power cycle; 0 for the first. */
  readonly cycle: number
}

export class EmbeddedMachine implements SimulatedMachine {
  readonly name: string
  readonly #folder: string
  readonly #file: string
  readonly #clock: Clock
  #state: PowerState
  #agent: Component | undefined
  readonly #requests = new Mutex()

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

  /** A machine starts with power. A machine that was off starts with another boot. */
  static async open(name: string, folder: DataFolder, clock: Clock): Promise<EmbeddedMachine> {
    const file = join(folder.bmc, `${name}.json`)
    const previous = await readFile(file, 'utf8').then(
      (text) => JSON.parse(text) as PowerState, // only this class writes it
      (): PowerState => ({ isOn: true, cycle: 0 }),
    )
    const nodeFolder = join(folder.nodes, name)
    await mkdir(nodeFolder, { recursive: true, mode: 0o700 })
    const state = { isOn: true, cycle: previous.isOn ? previous.cycle : previous.cycle + 1 }
    await writeDurably(file, JSON.stringify(state))
    return new EmbeddedMachine(name, { folder: await realpath(nodeFolder), file, clock, state })
  }

  /** The power cycle for the agent, which adds it to the boot id. */
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
    return this.#requests.run(async () => {
      await this.#remember({ ...this.#state, isOn: false })
      await this.#agent?.cut()
      await this.#endGuests()
    })
  }

  powerOn(): Promise<void> {
    return this.#requests.run(async () => {
      if (!this.#state.isOn) await this.#remember({ isOn: true, cycle: this.#state.cycle + 1 })
      this.#agent?.restore()
    })
  }

  async #remember(state: PowerState): Promise<void> {
    await writeDurably(this.#file, JSON.stringify(state))
    this.#state = state
  }

  /** Kills the guests, which are processes that work in their own folders below the node's. Repeats until there are
   *  none, because the agent may have been starting one. */
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

/** Access of the platform to the controllers of the machines. */
export interface BmcAccess {
  readonly url: string
  readonly username: string
  readonly password: string
  /** PEM. */
  readonly authority: string
}

/** The single controller of all machines. Its port stays the same, because nodes are identified by its address. */
export async function startMachines(
  machines: readonly SimulatedMachine[],
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
  const previous = await readFile(file, 'utf8').then(
    // written below only
    (text) => JSON.parse(text) as { readonly port: number; readonly password: string },
    () => undefined,
  )
  const { authority, certificate, key } = await openCertificates({ folder: folder.bmc, hosts: [HOST], clock, random })
  const password = previous?.password ?? newBase62(random, PASSWORD_LENGTH)
  const port = await probePort(HOST, previous?.port ?? 0).catch(async () => {
    print(
      `WARNING: port ${previous?.port ?? 0} on ${HOST} is in use, so nodes cannot be powered off where their objects ` +
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
    JSON.stringify({ url: simulator.url, port: previous?.port ?? simulator.port, username: USERNAME, password }),
  )
  return { simulator, access: { url: simulator.url, username: USERNAME, password, authority } }
}
