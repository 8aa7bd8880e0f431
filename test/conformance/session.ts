/** Plays one scenario against one server and writes down what happened, normalised. */

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Agent, request } from 'undici'
import { stringify } from 'yaml'
import { toolPath } from '../../tools/cluster/build.ts'
import { newNormaliser, type Normaliser, parseOutput } from './normalise.ts'
import { at } from './field.ts'
import { startWebhook, type Webhook } from './webhook.ts'
import type { FieldPath, KubectlStep, RequestStep, Scenario, Step } from './scenario.ts'

/** A server that scenarios are played against. */
export interface Target {
  readonly name: string
  /** Without a trailing slash. */
  readonly url: string
  readonly ca: string
  /** An administrator's bearer token. */
  readonly token: string
}

const STEP_DEADLINE_MILLISECONDS = 45_000 // the collector of a real server learns of new kinds every half minute
const POLL_MILLISECONDS = 50

/** Splits a command line at spaces; single quotes keep what they hold together. */
const splitLine = (line: string): string[] =>
  (line.match(/(?:[^\s']+|'[^']*')+/g) ?? []).map((word) => word.replaceAll("'", ''))

async function waitFor<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const deadline = performance.now() + STEP_DEADLINE_MILLISECONDS
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    if (performance.now() > deadline) throw new Error(`waited too long for ${what}`)
    await sleep(POLL_MILLISECONDS)
  }
}

/** An open watch whose frames wait here until a step asks for them. */
class OpenWatch {
  readonly #stop = new AbortController()
  readonly #frames: unknown[] = []
  #shown = 0
  hasEnded = false

  async open(
    url: string,
    { dispatcher, headers }: { dispatcher: Agent; headers: Record<string, string> },
  ): Promise<number> {
    const response = await request(url, { dispatcher, headers, signal: this.#stop.signal, bodyTimeout: 0 })
    void this.#read(response.body)
    return response.statusCode
  }

  async #read(body: AsyncIterable<Uint8Array>): Promise<void> {
    let rest = ''
    const decoder = new TextDecoder()
    try {
      for await (const chunk of body) {
        const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n')
        rest = parts.pop() ?? ''
        this.#frames.push(...parts.filter((line) => line.trim() !== '').map((line) => JSON.parse(line) as unknown))
      }
      if (rest.trim() !== '') this.#frames.push(JSON.parse(rest))
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#frames.push({ broken: String(error) })
    }
    this.hasEnded = true
  }

  async next(count: number): Promise<unknown[]> {
    await waitFor(
      `${count} watch frames, got ${this.#frames.length - this.#shown}`,
      () => this.hasEnded || this.#frames.length >= this.#shown + count || undefined,
    )
    const taken = this.#frames.slice(this.#shown, this.#shown + count)
    this.#shown += taken.length
    return taken
  }

  async rest(): Promise<unknown[]> {
    await waitFor('the watch to end', () => this.hasEnded || undefined)
    return this.#frames.slice(this.#shown)
  }

  close(): void {
    this.#stop.abort()
  }
}

/** A kubectl that keeps running while other steps go on. */
class Background {
  readonly child: ChildProcess
  #output = ''
  #errors = ''
  #shownLines = 0
  readonly #closed: Promise<number>

  constructor(child: ChildProcess) {
    this.child = child
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.#output += text))
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#errors += text))
    this.#closed = new Promise((resolve) => child.once('close', (code) => resolve(code ?? -1)))
  }

  async lines(count: number): Promise<string> {
    const all = () => this.#output.split('\n').slice(0, -1)
    await waitFor(
      `${count} lines, got ${this.#output}${this.#errors}`,
      () => all().length >= this.#shownLines + count || undefined,
    )
    const shown = all().slice(this.#shownLines, this.#shownLines + count)
    this.#shownLines += count
    return shown.join('\n')
  }

  async finish(): Promise<{ code: number; output: string; errors: string }> {
    const timer = setTimeout(() => this.child.kill('SIGKILL'), STEP_DEADLINE_MILLISECONDS)
    const code = await this.#closed
    clearTimeout(timer)
    return { code, output: this.#output.split('\n').slice(this.#shownLines).join('\n'), errors: this.#errors }
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL')
    await this.#closed
  }
}

/** The name of a scenario's own namespace, the same on every server. */
const namespaceOf = (name: string) =>
  `c-${name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 50)
    .replace(/-$/, '')}`

class Session {
  readonly #target: Target
  readonly #folder: string
  readonly #dispatcher: Agent
  readonly #values = new Map<string, string>()
  readonly #normaliser: Normaliser
  readonly #watches = new Map<string, OpenWatch>()
  readonly #backgrounds = new Map<string, Background>()
  #webhook: Webhook | undefined
  #shownReviews = 0
  readonly namespace: string

  constructor(
    target: Target,
    { folder, namespace, dispatcher }: { folder: string; namespace: string; dispatcher: Agent },
  ) {
    this.#target = target
    this.#folder = folder
    this.#dispatcher = dispatcher
    this.namespace = namespace
    this.#normaliser = newNormaliser(target.url)
    this.#values.set('ns', namespace)
  }

  #fill(text: string): string {
    return text.replace(/\{(\w+)\}/g, (whole, name: string) => this.#values.get(name) ?? whole)
  }

  /** A manifest as text: YAML stands as it is, an object becomes JSON. */
  #document(value: unknown): string {
    return this.#fill(typeof value === 'string' ? value : JSON.stringify(value))
  }

  async send(
    step: RequestStep,
  ): Promise<{ status: number; headers: Record<string, string | string[] | undefined>; text: string }> {
    const headers: Record<string, string> = {
      authorization: `Bearer ${step.token ? this.#fill(step.token) : this.#target.token}`,
      accept: step.accept ?? 'application/json',
    }
    const body = step.body === undefined ? null : this.#document(step.body)
    if (body !== null) headers['content-type'] = step.contentType ?? 'application/json'
    for (const [name, value] of Object.entries(step.headers ?? {})) headers[name.toLowerCase()] = this.#fill(value)
    const response = await request(this.#target.url + this.#fill(step.path), {
      method: step.method,
      headers,
      body,
      dispatcher: this.#dispatcher,
    })
    return { status: response.statusCode, headers: response.headers, text: await response.body.text() }
  }

  async #request(step: RequestStep): Promise<string> {
    const { until } = step
    const isThere = ({ status, text }: { status: number; text: string }) => {
      if (!until) return true
      if (until.status !== undefined && until.status !== status) return false
      const value: unknown = text.startsWith('{') ? JSON.parse(text) : {}
      if (until.absent !== undefined && at(value, until.absent) !== undefined) return false
      return (
        until.path === undefined ||
        ('equals' in until ? at(value, until.path) === until.equals : at(value, until.path) !== undefined)
      )
    }
    const { status, headers, text } = await waitFor(
      `${step.method} ${step.path} to answer ${JSON.stringify(until)}`,
      async () => {
        const answer = await this.send(step)
        return isThere(answer) ? answer : undefined
      },
    )
    const type = String(headers['content-type'] ?? '')
    const value: unknown = /^application\/(?!.*protobuf)/.test(type) && text !== '' ? JSON.parse(text) : text
    for (const [name, path] of Object.entries(step.remember ?? {})) {
      const found = at(value, path)
      this.#values.set(name, String(found))
      if (typeof found === 'string' && found.length > 4 && !/^\d+$/.test(found)) this.#normaliser.name(name, found)
    }
    for (const [name, header] of Object.entries(step.rememberHeaders ?? {}))
      this.#values.set(name, String(headers[header]))
    const shownHeaders = ['warning', ...(step.showHeaders ?? [])].flatMap((name) =>
      [headers[name] ?? []].flat().map((line) => `${name}: ${this.#normaliser.text(line)}`),
    )
    const shown = typeof value === 'string' ? this.#normaliser.text(value) : this.#normaliser.value(value, step.only)
    return [
      `${step.method} ${step.path}`,
      `${status} ${type.replace(/; *charset=utf-8/i, '')}`.trimEnd(),
      ...shownHeaders,
      shown,
    ]
      .join('\n')
      .trimEnd()
  }

  #spawn(step: KubectlStep): ChildProcess {
    const child = spawn(toolPath('kubectl'), splitLine(this.#fill(step.line)), {
      cwd: this.#folder,
      env: {
        PATH: process.env['PATH'],
        HOME: this.#folder,
        KUBECONFIG: join(this.#folder, 'kubeconfig'),
        KUBERC: 'off',
        KUBE_EDITOR: join(this.#folder, 'editor'),
        LC_ALL: 'C',
      },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    child.stdin?.on('error', () => {}) // kubectl may end without reading its input
    child.stdin?.end(step.stdin === undefined ? '' : this.#document(step.stdin))
    return child
  }

  #output(text: string): string {
    const parsed = parseOutput(text)
    return parsed === undefined ? this.#normaliser.text(text) : this.#normaliser.value(parsed)
  }

  async #kubectl(step: KubectlStep): Promise<string> {
    if (step.editor)
      await writeFile(join(this.#folder, 'editor'), `#!/bin/sh\n${this.#fill(step.editor)}\n`, { mode: 0o700 })
    for (const [name, value] of Object.entries(step.files ?? {}))
      await writeFile(join(this.#folder, name), this.#document(value))
    const background = new Background(this.#spawn(step))
    const title = `$ kubectl ${step.line}`
    if (step.background) {
      this.#backgrounds.set(step.background, background)
      return `${title} &`
    }
    return `${title}\n${this.#ending(await background.finish())}`.trimEnd()
  }

  #ending({ code, output, errors }: { code: number; output: string; errors: string }): string {
    return [
      this.#output(output),
      errors ? `stderr: ${this.#normaliser.text(errors)}` : '',
      code === 0 ? '' : `exit ${code}`,
    ]
      .filter((part) => part !== '')
      .join('\n')
  }

  #frames(frames: readonly unknown[], only: readonly FieldPath[] | undefined): string {
    return frames.map((frame) => `- ${this.#normaliser.value(frame, only).replaceAll('\n', '\n  ')}`).join('\n')
  }

  #watch(name: string): OpenWatch {
    const found = this.#watches.get(name)
    if (!found) throw new Error(`no watch is named ${name}`)
    return found
  }

  #background(name: string): Background {
    const found = this.#backgrounds.get(name)
    if (!found) throw new Error(`no command in the background is named ${name}`)
    return found
  }

  /** Does the step and answers what stands about it in the transcript. */
  async play(step: Step): Promise<string> {
    switch (step.kind) {
      case 'kubectl':
        return this.#kubectl(step)
      case 'request':
        return this.#request(step)
      case 'watch': {
        const opened = new OpenWatch()
        this.#watches.set(step.name, opened)
        const headers = { authorization: `Bearer ${this.#target.token}`, accept: step.accept ?? 'application/json' }
        const options = { dispatcher: this.#dispatcher, headers }
        return `WATCH ${step.path}\n${await opened.open(this.#target.url + this.#fill(step.path), options)}`
      }
      case 'frames':
        return `FRAMES ${step.name}\n${this.#frames(await this.#watch(step.name).next(step.count), step.only)}`
      case 'ended':
        return `ENDED ${step.name}\n${this.#frames(await this.#watch(step.name).rest(), step.only)}`
      case 'webhook':
        this.#webhook = await startWebhook()
        this.#values.set('webhookUrl', this.#webhook.url).set('webhookCa', this.#webhook.caBundle)
        this.#normaliser.name('webhookUrl', this.#webhook.url)
        return 'WEBHOOK'
      case 'reviews': {
        const all = this.#webhook?.reviews ?? []
        const news = all.slice(this.#shownReviews).filter((review) => at(review, 'request.dryRun') !== true)
        this.#shownReviews = all.length
        return `REVIEWS\n${this.#frames(news, step.only)}`
      }
      case 'lines':
        return `LINES ${step.name}\n${this.#normaliser.text(await this.#background(step.name).lines(step.count))}`
      case 'finish':
        return `FINISHED ${step.name}\n${this.#ending(await this.#background(step.name).finish())}`.trimEnd()
    }
  }

  async close(): Promise<void> {
    for (const watch of this.#watches.values()) watch.close()
    await this.#webhook?.close()
    for (const background of this.#backgrounds.values()) await background.kill()
  }
}

const kubeconfig = (target: Target, namespace: string) =>
  stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      {
        name: 'cluster',
        cluster: { server: target.url, 'certificate-authority-data': Buffer.from(target.ca).toString('base64') },
      },
    ],
    users: [{ name: 'admin', user: { token: target.token } }],
    contexts: [{ name: 'admin', context: { cluster: 'cluster', user: 'admin', namespace } }],
    'current-context': 'admin',
  })

/** Connections to the target, to be shared by its sessions and closed at the end. */
export const connect = (target: Target): Agent =>
  new Agent({ connect: { ca: target.ca }, connections: 64, bodyTimeout: 0 })

/** Plays the scenario in a fresh namespace and answers its transcript. A step that cannot be done ends it, and says
 *  why.
 *  The namespace stays: the server is thrown away afterwards, and hundreds of deletions would make a real one slow. */
export async function play(target: Target, scenario: Scenario, dispatcher: Agent): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svccloud-conformance-'))
  const namespace = namespaceOf(scenario.name)
  const session = new Session(target, { folder, namespace, dispatcher })
  const transcript: string[] = []
  try {
    await mkdir(join(folder, '.kube'))
    await writeFile(join(folder, 'kubeconfig'), kubeconfig(target, namespace), { mode: 0o600 })
    await session.send({
      kind: 'request',
      method: 'POST',
      path: '/api/v1/namespaces',
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
    })
    for (const step of scenario.steps) transcript.push(await session.play(step))
  } catch (error) {
    transcript.push(`FAILED ${error instanceof Error ? error.message : String(error)}`)
  } finally {
    await session.close()
    await rm(folder, { recursive: true, force: true })
  }
  return transcript.join('\n\n')
}

/** Creates what every scenario may use (the definitions of the suite) and waits until it is served. */
export async function prepare(target: Target, definitions: readonly unknown[], dispatcher: Agent): Promise<void> {
  const session = new Session(target, { folder: tmpdir(), namespace: 'default', dispatcher })
  for (const definition of definitions) {
    const answer = await session.send({
      kind: 'request',
      method: 'POST',
      path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      body: definition,
    })
    if (answer.status !== 201)
      throw new Error(`${target.name} refuses ${String(at(definition, 'metadata.name'))}: ${answer.text}`)
  }
  for (const definition of definitions) {
    const versions = at(definition, 'spec.versions') as readonly { name: string }[] // our own definitions
    for (const { name } of versions) {
      const path =
        `/apis/${String(at(definition, 'spec.group'))}/${name}/` + `${String(at(definition, 'spec.names.plural'))}`
      await waitFor(`${target.name} to serve ${path}`, async () =>
        (await session.send({ kind: 'request', method: 'GET', path })).status === 200 ? true : undefined,
      )
    }
  }
}
