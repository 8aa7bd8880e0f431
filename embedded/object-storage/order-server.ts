/** Carries out the orders of the process that serves clients. An invalid order kills that process. */
import type { Socket } from 'node:net'
import { forEachLine } from '../../kit/http/bounded.ts'
import type { Logger } from '../../kit/sys/log.ts'
import type { Cells, StartedEngine } from './cells.ts'
import {
  type Order,
  Order as Orders,
  ORDER_BYTES_MAXIMUM,
  ORDERS_OPEN_MAXIMUM,
  type SupervisorMessage,
} from './orders.ts'
import { PlaceLost, type Places } from './places.ts'
import { tryJson } from '../../kit/http/json.ts'

export interface OrderServerOptions {
  readonly channel: Socket
  readonly cells: Cells
  readonly places: Pick<Places, 'find'>
  /** Limit of the running engines. */
  readonly liveMaximum: number
  readonly log: Logger
}

export interface OrderServer {
  /** Resolves with the port for clients. */
  readonly ready: Promise<number>
  /** Process id of the tenant's engine; undefined when it does not run. */
  pid(id: string): number | undefined
  say(message: SupervisorMessage): void
  /** Resolves when no engine runs. */
  endAll(): Promise<void>
}

/** Limit of concurrent walks through folders. */
const WALKS_MAXIMUM = 2
const TEXT_CHARACTERS_MAXIMUM = 2_000

export function serveOrders(options: OrderServerOptions): OrderServer {
  const { channel, log } = options
  const ready = Promise.withResolvers<number>()
  const say = (message: SupervisorMessage): void => {
    if (channel.writable) channel.write(`${JSON.stringify(message)}\n`)
  }
  const runs = new Runs(options, say)
  const carryOut = carrierOf(options, runs, ready.resolve)
  let open = 0
  const take = (line: string): void => {
    const order = Orders.safeParse(tryJson(line)).data
    open += 1
    if (order === undefined || open > ORDERS_OPEN_MAXIMUM) {
      log.error('the process that serves clients of object storage gives no orders that exist; it is ended')
      channel.destroy()
      return
    }
    const { number } = order
    carryOut(order)
      .then(
        (done) => {
          say({ number, done: done ?? null })
          runs.follow()
        },
        (error: unknown) => {
          const failed = (error instanceof Error ? error.message : String(error)).slice(0, TEXT_CHARACTERS_MAXIMUM)
          say({ number, failed, isLost: error instanceof PlaceLost })
        },
      )
      .finally(() => {
        open -= 1
      })
  }
  void forEachLine(channel, ORDER_BYTES_MAXIMUM, take)
  return { ready: ready.promise, pid: (id) => runs.pid(id), say, endAll: () => runs.endAll() }
}

type CarrierParts = Pick<OrderServerOptions, 'cells' | 'places'>

function carrierOf({ cells, places }: CarrierParts, runs: Runs, ready: (port: number) => void) {
  const walks = openTurns(WALKS_MAXIMUM)
  const requireRecorded = (id: string): void => {
    if (places.find(id) === undefined) throw new Error('no such tenant is recorded')
  }
  return async (order: Order): Promise<unknown> => {
    switch (order.order) {
      case 'keep': {
        const { id, accessKeyId, bucketPrefix, secretAccessKey } = order
        return cells.keep({ id, accessKeyId, bucketPrefix }, secretAccessKey)
      }
      case 'prepare':
        requireRecorded(order.id)
        return cells.prepare(order.id)
      case 'start':
        requireRecorded(order.id)
        return runs.start(order.id)
      case 'measure':
        requireRecorded(order.id)
        return walks(() => cells.measure(order.id))
      case 'remove':
        requireRecorded(order.id)
        return runs.alone(order.id, () => cells.remove(order.id))
      case 'end':
        return runs.find(order.run)?.end()
      case 'missing':
        return (await runs.find(order.run)?.missing()) ?? null
      case 'ready':
        return ready(order.port)
    }
  }
}

/** The running engines. */
class Runs {
  readonly #options: OrderServerOptions
  readonly #say: (message: SupervisorMessage) => void
  readonly #runs = new Map<number, { readonly id: string; readonly engine: StartedEngine }>()
  /** Runs whose starts are not answered yet: the client does not know their numbers, so their ends are not reported. */
  readonly #begun: number[] = []
  /** Tenants whose engines run or start, or whose folders are about to be removed. */
  readonly #busy = new Set<string>()
  readonly #starting = new Set<Promise<StartedEngine>>()
  #last = 0
  #isOver = false

  constructor(options: OrderServerOptions, say: (message: SupervisorMessage) => void) {
    this.#options = options
    this.#say = say
  }

  find(run: number): StartedEngine | undefined {
    return this.#runs.get(run)?.engine
  }

  pid(id: string): number | undefined {
    return [...this.#runs.values()].find((run) => run.id === id)?.engine.pid()
  }

  /** Does the work while the tenant's engine does not run. */
  async alone<Result>(id: string, work: () => Promise<Result>): Promise<Result> {
    this.#take(id)
    try {
      return await work()
    } finally {
      this.#busy.delete(id)
    }
  }

  async start(id: string) {
    const { cells, places, liveMaximum } = this.#options
    if (this.#busy.size >= liveMaximum) throw new Error(`no more than ${liveMaximum} engines run`)
    this.#take(id)
    const starting = cells.start(id)
    this.#starting.add(starting)
    const engine = await starting
      .catch((error: unknown) => {
        this.#busy.delete(id)
        throw error
      })
      .finally(() => this.#starting.delete(starting))
    if (this.#isOver) engine.end()
    const run = (this.#last += 1)
    this.#runs.set(run, { id, engine })
    this.#begun.push(run)
    // Clients open the sockets again for each connection.
    await engine.forget()
    const { number, cell } = places.find(id) ?? {}
    return { run, number, uid: cell?.uid ?? null, pid: engine.pid() ?? null, root: engine.root }
  }

  /** Reports the ends of runs that were answered, from now on. */
  follow(): void {
    for (const run of this.#begun.splice(0)) {
      const { id = '', engine } = this.#runs.get(run) ?? {}
      void engine?.ended.then((how) => {
        this.#runs.delete(run)
        this.#busy.delete(id)
        this.#say({ ended: run, how: how.slice(0, TEXT_CHARACTERS_MAXIMUM) })
      })
    }
  }

  /** Permanently. */
  async endAll(): Promise<void> {
    this.#isOver = true
    await Promise.allSettled(this.#starting)
    const engines = [...this.#runs.values()].map(({ engine }) => engine)
    for (const engine of engines) engine.end()
    await Promise.all(engines.map(({ ended }) => ended))
  }

  #take(id: string): void {
    if (this.#busy.has(id)) throw new Error('its engine runs')
    this.#busy.add(id)
  }
}

/** Runs up to this many tasks concurrently; others wait for their turn. */
function openTurns(maximum: number): <Result>(work: () => Promise<Result>) => Promise<Result> {
  const waiting: (() => void)[] = []
  let busy = 0
  return async (work) => {
    if (busy >= maximum) await new Promise<void>((resolve) => waiting.push(resolve))
    else busy += 1
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next === undefined) busy -= 1
      else next()
    }
  }
}
