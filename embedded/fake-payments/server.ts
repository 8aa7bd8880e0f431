/** The FAKE payment processor as a server on this machine: its API, its two pages for people, and its events. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { dirname } from 'node:path'
import { defined } from '../../domain/defined.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { readIfThere, writeDurably } from '../../kit/sys/durable-file.ts'
import type { Logger } from '../../kit/sys/log.ts'
import { makeFolder } from '../../kit/sys/make-folder.ts'
import { answerPage } from './pages.ts'
import { FakePayments, signedEvent } from './processor.ts'
import type { FakeState } from './state.ts'
import { readText } from '../../kit/http/bounded.ts'
import { listen } from '../../kit/sys/listen.ts'

export interface FakeServerOptions {
  readonly clock: Clock
  readonly log: Logger
  /** 0 selects a free port. */
  readonly port: number
  readonly apiKey: string
  readonly webhookUrl: string
  readonly webhookSecret: string
  /** File with all its data. */
  readonly file: string
}

const HOST = '127.0.0.1'
const BODY_BYTES_MAXIMUM = 1_048_576
/** Interval of charges, and of attempts to deliver events. */
const ROUND_MILLISECONDS = 500

export interface FakeServer {
  readonly url: string
  readonly port: number
  stop(): Promise<void>
}

/** Resolves when it listens. The state is on the disk before each answer is sent. */
export async function startFakePayments(options: FakeServerOptions): Promise<FakeServer> {
  const { clock, log, file } = options
  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      log.error('not answered', { error })
      response.destroy()
    })
  })
  const port = await listen(server, { host: HOST, port: options.port })
  const url = `http://${HOST}:${port}`
  const state = await readState(file)
  const fake = new FakePayments({ clock, apiKey: options.apiKey, url, ...defined({ state }) })
  let writing: Promise<void> = Promise.resolve()
  const save = (): Promise<void> => (writing = writing.then(() => writeDurably(file, JSON.stringify(fake.state))))

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readText(request, BODY_BYTES_MAXIMUM)
    const { method = 'GET', url: path = '/', headers } = request
    const page = answerPage(fake, method, path, body)
    if (page !== undefined) {
      await save()
      response.writeHead(page.status, page.headers).end(page.body)
      return
    }
    const key = headers['idempotency-key']
    const answer = fake.handle({
      method,
      path,
      body,
      authorization: headers.authorization,
      idempotencyKey: typeof key === 'string' ? key : undefined,
    })
    if (method !== 'GET') await save()
    log.info('request', { method, path, status: answer.status })
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body))
  }

  const stopping = new AbortController()
  const working = (async () => {
    while (!stopping.signal.aborted) {
      fake.chargeDue()
      if (await deliver(fake, options)) await save()
      await clock.sleep(ROUND_MILLISECONDS, stopping.signal)
    }
  })().catch((error: unknown) => log.error('it stands still', { error }))
  return {
    url,
    port,
    async stop() {
      stopping.abort()
      await working
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await writing
    },
  }
}

/** Sends the events in order, each until it is accepted. Returns whether any was accepted. */
async function deliver(
  fake: FakePayments,
  { clock, log, webhookUrl, webhookSecret }: FakeServerOptions,
): Promise<boolean> {
  let isChanged = false
  for (const event of Array.from(fake.state.events)) {
    const { body, signature } = signedEvent(event, webhookSecret, clock.now())
    const status = await fetch(webhookUrl, {
      method: 'POST',
      body,
      headers: { 'content-type': 'application/json', 'stripe-signature': signature },
    }).then(
      (response) => response.status,
      () => 0,
    )
    log.info('event', { event_id: event.id, event_type: event.type, status })
    if (status !== 200) return isChanged
    fake.state.events = fake.state.events.filter((each) => each !== event)
    isChanged = true
  }
  return isChanged
}

async function readState(file: string): Promise<FakeState | undefined> {
  await makeFolder(dirname(file))
  const text = await readIfThere(file)
  return text === undefined ? undefined : (JSON.parse(text) as FakeState) // our own file
}
