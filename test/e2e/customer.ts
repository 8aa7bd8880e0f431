/** A customer of the running product: signs up as a person does, then speaks to the API with a token. */
import { randomUUID } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Endpoints } from '../../embedded/cloud.ts'
import { type DocumentCheck, openDocumentCheck } from '../contract/document-check.ts'
import { eventually, until } from '../eventually.ts'

/** What a customer must know of the product; asked anew after restarts. */
type Running = () => { readonly endpoints: Endpoints }

export interface Operation {
  readonly id: string
  readonly kind: string
  readonly status: 'pending' | 'running' | 'succeeded' | 'failed' | 'cancelled'
  readonly step: string
  readonly step_index: number
  readonly step_count: number
  readonly error: string
  readonly actor: string
  readonly events?: readonly { readonly kind: string; readonly message: string }[]
}

export interface Server {
  readonly id: string
  readonly hostname: string
  readonly state: string
  readonly desired_power: string
  readonly state_detail: string
  readonly active_operation: Operation | null
}

export interface Answer<Body> {
  readonly status: number
  readonly headers: Headers
  readonly body: Body
}

/** Every customer's. */
export const PASSWORD = 'a long walk on the beach 1987'
/** Nobody signs in with it. */
export const PUBLIC_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKfW0y1WQ3x8fMgmvHpsyWkBq3W1H2yj4v3mO3b2pTqI test@example.com'
const OPERATION_MILLISECONDS = 240_000
const LIMITED_TRIES_MAXIMUM = 30

const isFinal = ({ status }: Operation): boolean =>
  status === 'succeeded' || status === 'failed' || status === 'cancelled'

async function fetchWithinLimit(url: string, init: RequestInit): Promise<Response> {
  for (let tries = 1; ; tries++) {
    const response = await fetch(url, init)
    const seconds = Number(response.headers.get('retry-after'))
    if (response.status !== 429 || tries === LIMITED_TRIES_MAXIMUM || !(seconds > 0)) return response
    await response.body?.cancel()
    await sleep(seconds * 1_000)
  }
}

/** One request, whose answer is held against the document that the API serves; bodies are what the caller knows the API
 *  to answer. Beyond the rate limit it waits as long as the answer says, as the clients of the product do. */
async function send<Body>(url: string, init: RequestInit, { faultOf }: DocumentCheck): Promise<Answer<Body>> {
  const response = await fetchWithinLimit(url, init)
  const text = await response.text()
  const fault = faultOf(init.method ?? 'GET', new URL(url).pathname, {
    status: response.status,
    text,
    header: (name) => response.headers.get(name) ?? undefined,
  })
  if (fault !== undefined) throw new Error(`${init.method} ${url}: ${fault}`)
  return {
    status: response.status,
    headers: response.headers,
    body: (text === '' ? undefined : JSON.parse(text)) as Body,
  }
}

/** The secret of the link to the page, which stands alone on a line. */
async function mailedSecret(folder: string, email: string, page: string): Promise<string | undefined> {
  for (const name of (await readdir(folder)).filter((file) => file.endsWith('.eml'))) {
    const mail = await readFile(join(folder, name), 'utf8')
    const secret = new RegExp(`^\\S+/${page}#\\w+=(\\S+)\\r?$`, 'm').exec(mail)?.[1]
    if (mail.includes(email) && secret !== undefined) return secret
  }
  return undefined
}

interface Identity {
  readonly url: () => string
  /** What the API says of itself. */
  readonly document: DocumentCheck
  readonly email: string
  /** Sent with each request. */
  readonly headers: Readonly<Record<string, string>>
}

export class Customer {
  readonly #identity: Identity
  readonly #token: string

  private constructor(identity: Identity, token: string) {
    this.#identity = identity
    this.#token = token
  }

  /** Sign up, read the mail, verify, log in, make a token. */
  static async signUp(
    product: Running,
    email: string,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Customer> {
    const url = () => product().endpoints.api_url
    // a document is one
    const document = openDocumentCheck((await (await fetch(`${url()}/openapi.json`)).json()) as object)
    const identity = { url, document, email, headers }
    expectStatus(202, await post(identity, '/v1/auth/signup', { name: 'Test Person', email, password: PASSWORD }))
    // Where no mail is sent addresses count as confirmed.
    if (product().endpoints.mail_directory !== '') {
      const mailed = await eventually('the verification mail', () =>
        mailedSecret(product().endpoints.mail_directory, email, 'verify-email'),
      )
      expectStatus(200, await post(identity, '/v1/auth/email-verification/confirm', { token: mailed }))
    }
    return new Customer(identity, await issueToken(identity, 'test', 'read_write'))
  }

  /** Somebody new in the account, as a person invites one. Needs a product that writes its mail to a folder. */
  async invite(product: Running, email: string): Promise<Customer> {
    const session = await logIn(this.#identity)
    expectStatus(201, await post(this.#identity, '/v1/account/invitations', { email, role: 'member' }, session))
    const invitation = await eventually('the invitation', () =>
      mailedSecret(product().endpoints.mail_directory, email, 'accept-invitation'),
    )
    const body = { invitation, password: PASSWORD }
    expectStatus(201, await post(this.#identity, '/v1/auth/accept-invitation', body))
    const identity = { ...this.#identity, email }
    return new Customer(identity, await issueToken(identity, `of ${email}`, 'read_write'))
  }

  /** Another token, as a person makes one for a program. */
  newToken(name: string, scope: 'read' | 'read_write'): Promise<string> {
    return issueToken(this.#identity, name, scope)
  }

  /** What the customer's programs send. */
  get token(): string {
    return this.#token
  }

  request<Body>(method: string, path: string, body?: object): Promise<Answer<Body>> {
    const headers = {
      ...this.#identity.headers,
      authorization: `Bearer ${this.#token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    }
    return send<Body>(
      `${this.#identity.url()}${path}`,
      { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) },
      this.#identity.document,
    )
  }

  /** Gives the account a key, as a server needs one. */
  async addSshKey(): Promise<void> {
    expectStatus(201, await this.request('POST', '/v1/ssh-keys', { name: 'test', public_key: PUBLIC_KEY }))
  }

  async createServer(body: object): Promise<{ readonly server: Server; readonly operation: Operation }> {
    return expectStatus(202, await this.request<{ server: Server; operation: Operation }>('POST', '/v1/servers', body))
      .body
  }

  /** Starts a change of the server and answers its operation. */
  async change(method: 'POST' | 'PUT' | 'DELETE', path: string, body?: object): Promise<Operation> {
    return expectStatus(202, await this.request<{ operation: Operation }>(method, path, body)).body.operation
  }

  async server(id: string): Promise<Server> {
    return expectStatus(200, await this.request<{ server: Server }>('GET', `/v1/servers/${id}`)).body.server
  }

  async operation(id: string): Promise<Operation> {
    return expectStatus(200, await this.request<{ operation: Operation }>('GET', `/v1/operations/${id}`)).body.operation
  }

  /** Polls, also across restarts of the product, until the operation is over. */
  finished(id: string): Promise<Operation> {
    return until(`operation ${id} to end`, () => this.operation(id), isFinal, OPERATION_MILLISECONDS)
  }

  console(serverId: string): Console {
    return new Console(this.#identity.url(), this.#token, serverId)
  }
}

const post = (
  { url, document, headers: own }: Identity,
  path: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
) =>
  send<Record<string, unknown>>(
    `${url()}${path}`,
    { method: 'POST', headers: { 'content-type': 'application/json', ...own, ...headers }, body: JSON.stringify(body) },
    document,
  )

/** The headers of a new session. */
async function logIn(identity: Identity): Promise<Record<string, string>> {
  const { headers, body } = expectStatus(
    200,
    await post(identity, '/v1/auth/login', { email: identity.email, password: PASSWORD }),
  )
  const cookie = headers
    .getSetCookie()
    .map((text) => text.split(';')[0])
    .join('; ')
  return { cookie, 'x-csrf-token': String(body['csrf_token']) }
}

/** Logs in and makes a token. */
async function issueToken(identity: Identity, name: string, scope: string): Promise<string> {
  const session = await logIn(identity)
  const issued = expectStatus(201, await post(identity, '/v1/account/tokens', { name, scope }, session))
  return String(issued.body['token'])
}

function expectStatus<Body>(status: number, answer: Answer<Body>): Answer<Body> {
  if (answer.status !== status)
    throw new Error(`answered ${answer.status} instead of ${status}: ${JSON.stringify(answer.body)}`)
  return answer
}

const ASK_AGAIN_MILLISECONDS = 15_000
const ASKS_MAXIMUM = 12

/** The serial console of a server: follows the stream from the tail on. */
export class Console {
  readonly #url: string
  readonly #headers: Record<string, string>
  readonly #sessionId = randomUUID()
  readonly #end = new AbortController()
  readonly statuses: Record<string, unknown>[] = []
  #shown = ''
  #failure: unknown

  constructor(apiUrl: string, token: string, serverId: string) {
    this.#url = `${apiUrl}/v1/servers/${serverId}/console`
    this.#headers = { authorization: `Bearer ${token}` }
    this.#follow().catch((error: unknown) => void (this.#failure = error))
  }

  async #follow(): Promise<void> {
    const response = await fetch(`${this.#url}/stream`, { headers: this.#headers, signal: this.#end.signal })
    if (response.status !== 200 || response.body === null)
      throw new Error(`the stream answered ${response.status}: ${await response.text()}`)
    let pending = ''
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      pending += text
      const events = pending.split('\n\n')
      pending = events.pop() ?? ''
      for (const event of events) this.#take(event)
    }
  }

  #take(event: string): void {
    const kind = /^event: ?(.*)$/m.exec(event)?.[1]
    const data = /^data: ?(.*)$/m.exec(event)?.[1] ?? ''
    if (kind === 'tail' || kind === 'output') this.#shown += Buffer.from(data, 'base64').toString('utf8')
    if (kind === 'status') this.statuses.push(JSON.parse(data) as Record<string, unknown>) // ConsoleStatus
  }

  /** Everything shown so far. */
  get shown(): string {
    return this.#shown
  }

  /** Waits until the text that came after `from` characters matches. */
  async see(pattern: RegExp, from: number, milliseconds = 120_000): Promise<string> {
    const look = () => {
      if (this.#failure !== undefined) throw this.#failure
      return this.#shown.slice(from)
    }
    const shown = await until(`${pattern} on the console`, look, (text) => pattern.test(text), milliseconds)
    return pattern.exec(shown)?.[0] ?? ''
  }

  /** Once the guest can hear it. */
  async type(text: string): Promise<void> {
    await until(
      'the console to be writable',
      () => this.statuses.at(-1),
      (status) => status?.['writable'] === true,
    )
    const response = await fetch(`${this.#url}/input`, {
      method: 'POST',
      headers: { ...this.#headers, 'content-type': 'application/json' },
      body: JSON.stringify({ session_id: this.#sessionId, data: Buffer.from(text).toString('base64') }),
    })
    if (response.status !== 204) throw new Error(`console input answered ${response.status}: ${await response.text()}`)
  }

  /** Types the line until it is answered, as a person would: a shell that begins takes what is typed meanwhile for the
   *  terminal's answer to its own question. */
  async ask(line: string, answer: RegExp): Promise<void> {
    const before = this.#shown.length
    for (let tries = 1; ; tries++) {
      await this.type(`${line}\n`)
      try {
        await this.see(answer, before, ASK_AGAIN_MILLISECONDS)
        return
      } catch (error) {
        if (tries === ASKS_MAXIMUM || this.#failure !== undefined) throw error
      }
    }
  }

  close(): void {
    this.#end.abort()
  }
}
