/** An S3 client in a separate process, for the benchmarks of object storage: takes orders as lines of JSON. The first
 *  tells it where to connect; the others put and get. Ends with its input. */
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { openExchange, type StoreExchange, type StoreRequest } from '../kit/s3/exchange.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { exitProcess, printLine, standardStreams } from '../kit/sys/process.ts'
import { systemRandom } from '../kit/sys/random.ts'
import { closedLoop } from './runner.ts'

export type Order =
  | {
      readonly do: 'use'
      readonly url: string
      readonly authority: string
      readonly accessKeyId: string
      readonly secretAccessKey: string
      readonly bucket: string
    }
  | { readonly do: 'put'; readonly bytes: number; readonly connections: number; readonly seconds: number }
  | { readonly do: 'get'; readonly bytes: number; readonly connections: number; readonly seconds: number }

export interface Done {
  readonly units: number
  readonly seconds: number
  readonly milliseconds: readonly number[]
}

const CHUNK_BYTES = 1024 ** 2
const chunk = systemRandom.bytes(CHUNK_BYTES)
let used: { readonly exchange: StoreExchange; readonly bucket: string } | undefined

function content(bytes: number): Pick<StoreRequest, 'body' | 'stream'> {
  if (bytes <= CHUNK_BYTES) return { body: chunk.subarray(0, bytes) }
  const pieces = Array.from({ length: bytes / CHUNK_BYTES }, () => chunk)
  return { stream: { content: Readable.from(pieces), bytes } }
}

/** Each connection has a few separate objects. */
const OBJECTS_OF_CONNECTION = 50
const keyOf = (bytes: number, connection: number, turn: number): string =>
  `o${bytes}/${connection}/${bytes > CHUNK_BYTES ? 0 : turn % OBJECTS_OF_CONNECTION}`

async function ask(request: StoreRequest, bytes: number): Promise<void> {
  if (used === undefined) throw new Error('nobody has said where')
  const answer = await used.exchange.ask({ ...request, path: `${used.bucket}/${request.path ?? ''}` })
  let read = 0
  for await (const piece of answer) read += (piece as Buffer).length
  if (answer.statusCode !== 200) throw new Error(`${request.method}: status ${answer.statusCode}`)
  if (request.method === 'GET' && read !== bytes) throw new Error(`${read} bytes of ${bytes} came`)
}

async function carryOut(order: Order): Promise<Done | object> {
  if (order.do === 'use') {
    const { url, authority, accessKeyId, secretAccessKey, bucket } = order
    const exchange = openExchange({ url, authority, credentials: { accessKeyId, secretAccessKey }, clock })
    used = { exchange, bucket }
    await exchange.askWhole({ method: 'PUT', path: bucket })
    return {}
  }
  const milliseconds: number[] = []
  const turns = new Map<number, number>()
  const { bytes, connections, seconds } = order
  const done = await closedLoop(connections, seconds, async (connection) => {
    const turn = turns.get(connection) ?? 0
    turns.set(connection, turn + 1)
    const startedAt = clock.monotonicMilliseconds()
    const path = keyOf(bytes, connection, turn)
    if (order.do === 'put') await ask({ method: 'PUT', path, ...content(bytes) }, bytes)
    else await ask({ method: 'GET', path }, bytes)
    milliseconds.push(clock.monotonicMilliseconds() - startedAt)
  })
  return { ...done, milliseconds }
}

for await (const line of createInterface({ input: standardStreams().input })) {
  const order = JSON.parse(line) as Order // from a benchmark
  printLine(
    JSON.stringify(
      await carryOut(order).catch((error: unknown) => ({
        error: error instanceof Error ? error.message : 'it failed',
      })),
    ),
  )
}
exitProcess(0)
