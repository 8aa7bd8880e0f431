/** The identity routes behind the real pipeline, on a real database, without a socket: with a clock that tests move, a
 *  browser-like cookie jar, and the mails that were sent. Everything that is logged is searched for secrets after each
 *  request. */
import { mkdtemp, readdir, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Identity, type IdentityOptions, openIdentity } from '../../../apiserver/identity/identity.ts'
import { auditRefused } from '../../../apiserver/kit/change/staff-audit.ts'
import { IDENTITY_NOUNS } from '../../../apiserver/nouns.ts'
import { folderTransport } from '../../../apiserver/mail/transport.ts'
import { sendOne } from '../../../apiserver/mail/worker.ts'
import type { Database } from '../../../db/kit/open.ts'
import { PLAIN_STYLE } from '../../../domain/mail/write.ts'
import { ADMIN, openCore } from '../../../embedded/kubernetes/core/core.ts'
import { memoryStorage } from '../../../embedded/kubernetes/storage/memory.ts'
import { openClient } from '../../../kit/kube/client.ts'
import type { Transport } from '../../../kit/kube/transport.ts'
import { createPipeline, requestDurations } from '../../../kit/http/pipeline.ts'
import type { Endpoint } from '../../../kit/http/endpoint.ts'
import { type Clock, systemClock } from '../../../kit/sys/clock.ts'
import { openRegistry } from '../../../kit/sys/metrics.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { documented } from '../../contract/document-check.ts'
import { openLogGuard } from './log-guard.ts'

export interface MovableClock extends Clock {
  move(seconds: number): void
}

/** Stands still until it is moved; sleeping moves it. */
export function movableClock(start = '2026-03-01T12:00:00Z'): MovableClock {
  let milliseconds = Date.parse(start)
  return {
    now: () => new Date(milliseconds),
    monotonicMilliseconds: () => milliseconds,
    sleep: async (slept) => void (milliseconds += slept),
    after: systemClock.after,
    move: (seconds) => void (milliseconds += seconds * 1000),
  }
}

export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  /** JSON bodies, whose shape the pipeline has checked against the route; empty for anything else. */
  readonly body: Record<string, unknown>
  readonly text: string
}

export interface SendOptions {
  readonly body?: unknown
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly from?: string
  /** Leave the CSRF header out. */
  readonly withoutCsrf?: boolean
}

/** A browser: keeps cookies and sends the CSRF header from them. */
export interface Browser {
  readonly cookies: Map<string, string>
  send(method: string, path: string, options?: SendOptions): Promise<Reply>
}

export const GOOD_PASSWORD = 'correct zebra lantern 42'

export async function openHarness(
  db: Database,
  options: Partial<Omit<IdentityOptions, 'log'>> & {
    readonly endpoints?: readonly Endpoint[]
    readonly startsAt?: string
  } = {},
) {
  const clock = movableClock(options.startsAt)
  const guard = openLogGuard()
  const { log } = guard
  const core = await openCore({ clock, random: systemRandom, log, storage: memoryStorage() })
  /** What answers for Kubernetes; tests may put something else there. */
  const kubernetes: { serve: Transport } = { serve: (request) => core.handle(request, ADMIN) }
  const store = openClient({
    transport: (request) => kubernetes.serve(request),
    fieldManager: 'svccloud-apiserver',
    clock,
    random: systemRandom,
  })
  const identity: Identity = await openIdentity({
    db,
    store,
    clock,
    random: systemRandom,
    log,
    publicUrl: 'http://127.0.0.1:8080',
    canSendMail: true,
    ...options,
  })
  const endpoints = [...IDENTITY_NOUNS.flatMap((noun) => noun.endpoints(identity.parts)), ...(options.endpoints ?? [])]
  const pipelineOf = (audience: 'customer' | 'operator') =>
    documented(
      audience,
      createPipeline({
        ...identity,
        authenticate: audience === 'customer' ? identity.authenticate : identity.authenticateOperator,
        endpoints: endpoints.filter(({ route }) => route.audience === audience),
        clock,
        random: systemRandom,
        log,
        durations: requestDurations(openRegistry({ isProcessWide: false })),
        auditRefusal: (refusal) => auditRefused(refusal, { db, clock, random: systemRandom }),
        translate: (error) => error,
        trustedProxies: [],
        isSecure: false,
        checkAnswers: true,
      }),
    )
  const pipelines = { customer: pipelineOf('customer'), operator: pipelineOf('operator') }
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-mail-'))
  const transport = folderTransport(folder)
  const read = new Set<string>()

  function openBrowser(address = '192.0.2.1', audience: 'customer' | 'operator' = 'customer'): Browser {
    const cookies = new Map<string, string>()
    return {
      cookies,
      async send(method, path, { body, token, headers = {}, from = address, withoutCsrf = false } = {}) {
        const csrf = cookies.get(audience === 'customer' ? 'svccloud_csrf' : 'svccloud_staff_csrf')
        const response = await pipelines[audience]({
          method,
          target: path,
          remoteAddress: from,
          signal: new AbortController().signal,
          headers: {
            ...(body === undefined ? {} : { 'content-type': 'application/json' }),
            ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
            ...(cookies.size === 0
              ? {}
              : { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') }),
            ...(csrf === undefined || withoutCsrf ? {} : { 'x-csrf-token': csrf }),
            ...headers,
          },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        })
        guard.learnFrom(body)
        if (token !== undefined) guard.learn(token)
        for (const set of [response.headers['set-cookie'] ?? []].flat()) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? []
          if (/max-age=0\b/i.test(set)) cookies.delete(name)
          else cookies.set(name, value)
          if (name !== 'svccloud_sign_in_provider') guard.learn(value)
        }
        const text = await textOf(response.body)
        const isJson =
          String(response.headers['content-type'] ?? '').includes('json') &&
          !String(response.headers['content-type']).includes('ndjson')
        const answer = isJson && text !== '' ? JSON.parse(text) : {}
        guard.learnFrom(answer)
        guard.check()
        return { status: response.status, headers: response.headers, text, body: answer }
      },
    }
  }

  /** Sends what the outbox holds and answers the new mails, oldest first, as raw text. */
  async function readMails(): Promise<string[]> {
    while (
      await sendOne({
        db,
        clock,
        random: systemRandom,
        log,
        transport,
        from: 'svccloud <no-reply@cloud.example>',
        language: 'en',
        style: PLAIN_STYLE,
      })
    );
    const names = (await readdir(folder)).sort().filter((name) => !read.has(name))
    for (const name of names) read.add(name)
    guard.check()
    return await Promise.all(names.map((name) => readFile(join(folder, name), 'utf8')))
  }

  /** The secret of the link in the newest mail to the address. */
  async function mailedSecret(email: string): Promise<string> {
    const mail = (await readMails()).filter((text) => text.includes(`To: ${email}\r\n`)).at(-1) ?? ''
    const secret = /^http\S+#(?:token|invitation)=(\S+)$/m.exec(mail.replaceAll('\r', ''))?.[1]
    if (secret === undefined) throw new Error(`no link was mailed to ${email}`)
    guard.learn(secret)
    return secret
  }

  /** A signed-in owner of a new account with a verified address. */
  async function signUpAndIn(email: string): Promise<Browser> {
    const browser = openBrowser(`198.51.100.${(people += 1)}`)
    await browser.send('POST', '/v1/auth/signup', { body: { name: 'Ada', email, password: GOOD_PASSWORD } })
    await browser.send('POST', '/v1/auth/email-verification/confirm', { body: { token: await mailedSecret(email) } })
    await browser.send('POST', '/v1/auth/login', { body: { email, password: GOOD_PASSWORD } })
    return browser
  }
  let people = 0

  return {
    clock,
    identity,
    store,
    kubernetes,
    guard,
    openBrowser,
    readMails,
    mailedSecret,
    signUpAndIn,
    mailFolder: folder,
  }
}

async function textOf(body: string | Uint8Array | AsyncIterable<string | Uint8Array>): Promise<string> {
  if (typeof body === 'string') return body
  if (body instanceof Uint8Array) return Buffer.from(body).toString()
  let text = ''
  for await (const chunk of body) text += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
  return text
}
