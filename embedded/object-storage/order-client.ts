/** Sends orders for everything that needs root, from the process that serves clients. */
import type { FileHandle } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { readLines } from '../../kit/http/bounded.ts'
import type { Cells, StartedEngine } from './cells.ts'
import { SOCKETS } from './engine.ts'
import {
  ANSWER_BYTES_MAXIMUM,
  type NewOrder,
  InitialState,
  MeasuredAnswer,
  ORDERS_OPEN_MAXIMUM,
  SupervisorMessage,
  StartedRun,
  TenantLine,
} from './orders.ts'
import { PlaceLost, type RecordedTenant } from './places.ts'
import { slowDown } from './request.ts'
import { openSocket } from './spawner.ts'

export interface OrderClient {
  readonly beginning: InitialState
  readonly cells: Cells
  /** Reports that clients are served at this port. */
  ready(port: number): Promise<void>
  /** Resolves when this process must stop, because it was ordered to or because nobody carries out orders. */
  readonly over: Promise<void>
}

/** `tenants`: the folder of all tenants, as a path that this process can use. Resolves when it knows the recorded
 *  tenants. */
export async function openOrders(channel: Socket, tenants: string): Promise<OrderClient> {
  const lines = readLines(channel, ANSWER_BYTES_MAXIMUM)
  const next = async (): Promise<unknown> => JSON.parse(String((await lines.next()).value))
  const beginning = InitialState.parse(await next())
  const recorded = new Map<string, RecordedTenant>()
  for (let left = beginning.tenants; left > 0; left -= 1) {
    const tenant = TenantLine.parse(await next())
    recorded.set(tenant.id, tenant)
  }
  const conversation = new Conversation(channel)
  const ask = (order: NewOrder): Promise<unknown> => conversation.ask(order)
  return {
    beginning,
    over: conversation.listen(lines),
    ready: async (port) => void (await ask({ order: 'ready', port })),
    cells: {
      all: () => [...recorded.values()],
      find: (id) => recorded.get(id),
      async keep(resident, secretAccessKey) {
        const { id, accessKeyId, bucketPrefix } = resident
        await ask({ order: 'keep', id, accessKeyId, bucketPrefix, secretAccessKey })
        const secret = secretAccessKey ?? recorded.get(id)?.secretAccessKey ?? null
        recorded.set(id, { id, accessKeyId, bucketPrefix, secretAccessKey: secret })
      },
      prepare: async (id) => void (await ask({ order: 'prepare', id })),
      start: (id) => start(conversation, tenants, id),
      measure: async (id) => MeasuredAnswer.parse(await ask({ order: 'measure', id })),
      async remove(id) {
        await ask({ order: 'remove', id })
        recorded.delete(id)
      },
    },
  }
}

class Conversation {
  readonly #channel: Socket
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>()
  readonly #ends = new Map<number, PromiseWithResolvers<string>>()
  #last = 0

  constructor(channel: Socket) {
    this.#channel = channel
  }

  /** Throws the other process's errors, and SlowDown when too many orders are open. */
  ask(order: NewOrder): Promise<unknown> {
    if (this.#pending.size >= ORDERS_OPEN_MAXIMUM) return Promise.reject(slowDown())
    const number = (this.#last += 1)
    const answer = Promise.withResolvers<unknown>()
    this.#pending.set(number, answer)
    this.#channel.write(`${JSON.stringify({ number, ...order })}\n`)
    return answer.promise
  }

  /** The result of a run, even if it has ended before this call. Call it once. */
  endOf(run: number): Promise<string> {
    const end = this.#endOf(run)
    void end.promise.then(() => this.#ends.delete(run))
    return end.promise
  }

  #endOf(run: number): PromiseWithResolvers<string> {
    const end = this.#ends.get(run) ?? Promise.withResolvers<string>()
    this.#ends.set(run, end)
    return end
  }

  /** Resolves at the end of the input. */
  async listen(lines: AsyncGenerator<string, void>): Promise<void> {
    for (;;) {
      const line = await lines.next()
      if (line.done === true || !this.#hear(SupervisorMessage.parse(JSON.parse(line.value)))) return
    }
  }

  #hear(message: SupervisorMessage): boolean {
    if ('stop' in message) return false
    if ('ended' in message) {
      this.#endOf(message.ended).resolve(message.how)
      return true
    }
    const answer = this.#pending.get(message.number)
    this.#pending.delete(message.number)
    if ('failed' in message) answer?.reject(message.isLost ? new PlaceLost(message.failed) : new Error(message.failed))
    else answer?.resolve(message.done)
    return true
  }
}

async function start(conversation: Conversation, tenants: string, id: string): Promise<StartedEngine> {
  const begun = StartedRun.parse(await conversation.ask({ order: 'start', id }))
  const { run, root } = begun
  let pid = begun.pid ?? undefined
  const ended = conversation.endOf(run).then((how) => {
    pid = undefined
    return how
  })
  const end = (): void => void conversation.ask({ order: 'end', run }).catch(() => {}) // they all end with the channel
  const handles: FileHandle[] = []
  const forget = async (): Promise<void> => {
    for (const handle of handles.splice(0)) await handle.close()
  }
  try {
    const paths: string[] = []
    for (const name of Object.values(SOCKETS)) {
      const handle = await openSocket(`${tenants}/${begun.number}/run/${name}`, begun.uid ?? undefined)
      if (handle === undefined) throw new Error('the engine has no socket')
      handles.push(handle)
      paths.push(`/proc/self/fd/${handle.fd}`)
    }
    const [s3 = '', admin = ''] = paths
    const missing = async (): Promise<string | undefined> => {
      const name = await conversation.ask({ order: 'missing', run })
      return typeof name === 'string' ? name : undefined
    }
    return { pid: () => pid, s3, admin, root, ended, end, forget, missing }
  } catch (error) {
    end()
    await forget()
    await ended
    throw error
  }
}
