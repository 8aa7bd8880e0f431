/** A whole cloud on one machine: which components there are, in what order they start and stop, and the settings of
 *  each.
 *  The components are the production ones; only who starts them differs. */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Clock } from '../kit/sys/clock.ts'
import { writeDurably } from '../kit/sys/durable-file.ts'
import { environment } from '../kit/sys/process.ts'
import { newBase62, newUuid, type Random } from '../kit/sys/random.ts'
import { catalogFor, planNodes } from './catalog.ts'
import {
  type DataFolder,
  endLeftovers,
  type ProcessRecord,
  readSealingKeys,
  recordProcesses,
  StartRefused,
} from './data-folder.ts'
import type { BmcSimulator } from './bmc-simulator.ts'
import { type Access, embeddedAccess, ownAccess } from './kubernetes-access.ts'
import { EmbeddedMachine, startMachines } from './machines.ts'
import { waitForNodes } from './node-readiness.ts'
import type { HypervisorChoice, NodeCount, Options } from './options.ts'
import { takePort } from './ports.ts'
import { Component, type ReadyMessage } from './supervisor.ts'

/** What `endpoints.json` says; paths are absolute. */
export interface Endpoints {
  readonly version: string
  readonly pid: number
  readonly api_url: string
  readonly operator_url: string
  readonly kubernetes_url: string
  readonly kubeconfig: string
  /** File with the certificate of the Kubernetes API's authority; null when the kubeconfig of one's own names none. */
  readonly ca_certificate: string | null
  readonly mail_directory: string
  readonly postgres_url: string
  /** File with a bearer token for the operator listener; null when the kubeconfig of one's own holds none. */
  readonly operator_token_file: string | null
  /** Redfish service of the nodes; who may switch their power is in `bmc/access.json` of the data folder. */
  readonly bmc_url: string
}

export interface CloudOptions {
  readonly options: Options
  readonly hypervisor: HypervisorChoice
  readonly folder: DataFolder
  readonly version: string
  readonly pid: number
  readonly clock: Clock
  readonly random: Random
  /** One line for people. */
  readonly print: (line: string) => void
}

const PROJECT = join(import.meta.dirname, '..')
const LOOPBACK = '127.0.0.1'
const WEBHOOK_TOKEN_CHARACTERS = 43

/** Read by the components themselves and handed through as they are. */
const PASSED_ON = [
  'SVCCLOUD_SMTP_URL',
  'SVCCLOUD_SMTP_ALLOW_PLAIN',
  'SVCCLOUD_MAIL_FROM',
  'SVCCLOUD_TRUSTED_PROXIES',
  'SVCCLOUD_GUEST_NETWORK',
  'SVCCLOUD_MIGRATION_BANDWIDTH',
  'SVCCLOUD_LOG_LEVEL',
] as const

/** Read by the API server alone; some hold secrets. */
const PASSED_ON_TO_APISERVER = [
  'SVCCLOUD_PUBLIC_URL',
  'SVCCLOUD_IDENTITY_PROVIDERS',
  'SVCCLOUD_SUPPORT_READ_NEEDS_CONSENT',
  'SVCCLOUD_AUDIT_VERIFY_SECONDS',
  'SVCCLOUD_AUDIT_RETENTION_DAYS',
  'SVCCLOUD_WEBHOOK_TOKEN_FILE',
  'SVCCLOUD_WEBHOOK_CLIENT_AUTHORITY_FILE',
] as const

type Settings = Readonly<Record<string, string | undefined>>

const given = (names: readonly string[]): Settings =>
  Object.fromEntries(names.map((name) => [name, environment()[name]]))

/** The environment of a component: the machine's, without the settings of `npm start`, plus its own. */
function componentEnvironment(settings: Settings): Settings {
  const ofTheMachine = Object.entries(environment()).filter(
    ([name]) => !name.startsWith('SVCCLOUD_') && name !== 'DATABASE_URL' && name !== 'KUBECONFIG',
  )
  return { ...Object.fromEntries(ofTheMachine), ...given(PASSED_ON), ...settings }
}

/** Nodes of one zone share storage; a node alone has nobody to share it with. */
function sharedVolumes(node: string, zones: readonly NodeCount[], folder: DataFolder): string {
  const zone = planNodes(zones).find(({ name }) => name === node)?.zone
  const isShared = zones.some((each) => each.zone === zone && each.count > 1)
  return zone !== undefined && isShared ? join(folder.shared, zone) : 'none'
}

/** Where people reach what listens on the address: every address of the machine includes the loopback one. */
const reachable = (host: string): string => {
  const named = host === '0.0.0.0' ? LOOPBACK : host === '::' ? '::1' : host
  return named.includes(':') ? `[${named}]` : named
}

/** The webhook tells the Kubernetes API by itself where it listens. A cluster of one's own may be unable to reach this
 *  machine, and the components cannot be told from the person whose kubeconfig they use: unless somebody names an
 *  address, the controllers refuse what is not allowed. */
const webhookSettings = (
  { platformUsers }: Access,
  { host, folder, isEmbedded }: { readonly host: string; readonly folder: DataFolder; readonly isEmbedded: boolean },
): Settings =>
  platformUsers.length === 0
    ? {}
    : {
        SVCCLOUD_WEBHOOK_HOST: host,
        SVCCLOUD_WEBHOOK_PORT: '0',
        SVCCLOUD_WEBHOOK_REGISTER: 'true',
        SVCCLOUD_PLATFORM_USERS: platformUsers.join(','),
        ...(isEmbedded ? { SVCCLOUD_WEBHOOK_TOKEN_FILE: folder.webhookTokenFile } : {}),
      }

const textOf = (message: ReadyMessage, name: string): string => {
  const value = message[name]
  if (typeof value !== 'string') throw new Error(`the ready message lacks ${name}`)
  return value
}

export class Cloud {
  readonly #options: CloudOptions
  /** In the order of their start. */
  readonly #components: Component[] = []
  #recording: Promise<void> = Promise.resolve()
  readonly #stopping = new AbortController()
  #bmc: BmcSimulator | undefined
  #starting: Promise<unknown> = Promise.resolve()

  constructor(options: CloudOptions) {
    this.#options = options
  }

  /** Starts everything and answers once all components serve. Throws StartRefused with a clear text for people. */
  start(): Promise<Endpoints> {
    const starting = this.#start()
    this.#starting = starting.catch(() => undefined) // start() rejects with it
    return starting
  }

  async #start(): Promise<Endpoints> {
    const { options, folder, clock, version, pid } = this.#options
    await rm(folder.endpointsFile, { force: true }) // of a run that was killed
    await endLeftovers(folder, clock)
    const port = await takePort('port', options.host, options.port)
    const operatorPort = await takePort('operator-port', LOOPBACK, options.operatorPort)
    const kubernetesPort =
      options.kubeconfig === undefined ? await takePort('kubernetes-port', LOOPBACK, options.kubernetesPort) : 0
    const machines = await Promise.all(
      planNodes(options.nodes).map(({ name }) => EmbeddedMachine.open(name, folder, clock)),
    )
    const bmc = await startMachines(machines, this.#options)
    this.#bmc = bmc.simulator
    await writeDurably(folder.catalogFile, await catalogFor(options.nodes, bmc.access))

    const databaseUrl = options.databaseUrl ?? (await this.#startPostgres())
    const access =
      options.kubeconfig === undefined
        ? await this.#startKubernetes(kubernetesPort)
        : await ownAccess(options.kubeconfig, { folder, hasOwnUsers: options.webhookHost !== undefined })
    await this.#startControllers(access, databaseUrl)
    await Promise.all([
      this.#startApiserver(access, databaseUrl, { port, operatorPort }),
      ...machines.map((machine) => this.#startAgent(machine, access)),
    ])
    const nodes = planNodes(options.nodes).map(({ name }) => name)
    const late = await waitForNodes({ databaseUrl, nodes, clock, signal: this.#stopping.signal })
    if (late.length > 0)
      this.#options.print(`WARNING: ${late.join(', ')} cannot take servers yet. Logs: ${folder.logs}`)
    const endpoints: Endpoints = {
      version,
      pid,
      api_url: `http://${reachable(options.host)}:${port}`,
      operator_url: `http://${LOOPBACK}:${operatorPort}`,
      kubernetes_url: access.url,
      kubeconfig: access.kubeconfig,
      ca_certificate: access.caFile,
      mail_directory: folder.mail,
      postgres_url: databaseUrl,
      operator_token_file: access.tokenFile,
      bmc_url: bmc.access.url,
    }
    await writeDurably(folder.endpointsFile, `${JSON.stringify(endpoints, null, 2)}\n`)
    return endpoints
  }

  /** Stops everything, what was started last first. Guests stay, except in an ephemeral cloud. */
  async stop(): Promise<void> {
    const { folder } = this.#options
    this.#stopping.abort()
    await this.#bmc?.stop()
    const stores = this.#components.filter(({ name }) => name === 'postgres' || name === 'kubernetes')
    await Promise.all(
      this.#components.filter((component) => !stores.includes(component)).map((component) => component.stop()),
    )
    for (const store of stores.toReversed()) await store.stop()
    await this.#starting // a start that is under way writes files until it notices
    await this.#recording
    for (const file of [folder.endpointsFile, folder.processesFile]) await rm(file, { force: true })
  }

  #startControllers(access: Access, databaseUrl: string): Promise<ReadyMessage> {
    return this.#startComponent('controllers', 'controllers/main.ts', async () => ({
      ...(await this.#succession()),
      SVCCLOUD_DATABASE_URL: databaseUrl,
      SVCCLOUD_KUBECONFIG: access.controllers,
      SVCCLOUD_INSTALL_CRDS: 'true',
      SVCCLOUD_CATALOG_FILE: this.#options.folder.catalogFile,
    }))
  }

  async #startApiserver(
    access: Access,
    databaseUrl: string,
    { port, operatorPort }: { readonly port: number; readonly operatorPort: number },
  ): Promise<ReadyMessage> {
    const { options, folder, random } = this.#options
    const { SVCCLOUD_SMTP_URL, SVCCLOUD_SEALING_KEYS } = environment()
    return this.#startComponent('apiserver', 'apiserver/main.ts', {
      ...(SVCCLOUD_SMTP_URL ? {} : { SVCCLOUD_MAIL_DIRECTORY: folder.mail }),
      ...given(PASSED_ON_TO_APISERVER),
      SVCCLOUD_SEALING_KEYS: SVCCLOUD_SEALING_KEYS ?? (await readSealingKeys(folder, random)),
      SVCCLOUD_HOST: options.host,
      SVCCLOUD_PORT: String(port),
      SVCCLOUD_OPERATOR_HOST: LOOPBACK,
      SVCCLOUD_OPERATOR_PORT: String(operatorPort),
      SVCCLOUD_DATABASE_URL: databaseUrl,
      SVCCLOUD_KUBECONFIG: access.apiserver,
      ...webhookSettings(access, {
        host: options.webhookHost ?? LOOPBACK,
        folder,
        isEmbedded: options.kubeconfig === undefined,
      }),
    })
  }

  #startAgent(machine: EmbeddedMachine, access: Access): Promise<ReadyMessage> {
    const { options, folder, hypervisor } = this.#options
    const { name } = machine
    const { SVCCLOUD_IMAGE_CACHE, SVCCLOUD_SHARED_VOLUMES } = environment()
    return this.#startComponent(
      `agent-${name}`,
      'agents/node/main.ts',
      async () => ({
        SVCCLOUD_POWER_CYCLE: machine.cycle,
        SVCCLOUD_NODE_NAME: name,
        SVCCLOUD_KUBECONFIG: access.agent(name),
        SVCCLOUD_DATA: join(folder.nodes, name),
        SVCCLOUD_HYPERVISOR: hypervisor,
        SVCCLOUD_IMAGE_CACHE: SVCCLOUD_IMAGE_CACHE ?? folder.images,
        SVCCLOUD_STOP_GUESTS: String(options.isEphemeral),
        SVCCLOUD_SHARED_VOLUMES: SVCCLOUD_SHARED_VOLUMES ?? sharedVolumes(name, options.nodes, folder),
      }),
      (component) => machine.run(component),
    )
  }

  async #startPostgres(): Promise<string> {
    const { folder } = this.#options
    let port = 0
    const ready = await this.#startComponent('postgres', 'embedded/postgres-main.ts', async () => ({
      SVCCLOUD_DATA: folder.postgres,
      SVCCLOUD_PORT: String(port),
    }))
    // Comes back at the same port when it is started again: the others hold its URL.
    port = Number(ready['port'])
    return textOf(ready, 'url')
  }

  async #startKubernetes(port: number): Promise<Access> {
    const { folder, options, random } = this.#options
    await writeDurably(folder.webhookTokenFile, newBase62(random, WEBHOOK_TOKEN_CHARACTERS))
    const ready = await this.#startComponent('kubernetes', 'embedded/kubernetes/main.ts', {
      SVCCLOUD_WEBHOOK_TOKEN_FILE: folder.webhookTokenFile,
      SVCCLOUD_DATA: folder.kubernetes,
      SVCCLOUD_HOST: LOOPBACK,
      SVCCLOUD_PORT: String(port),
    })
    const server = {
      url: textOf(ready, 'url'),
      kubeconfig: textOf(ready, 'kubeconfig'),
      authorityFile: textOf(ready, 'ca_certificate'),
    }
    return embeddedAccess(
      server,
      planNodes(options.nodes).map(({ name }) => name),
      folder,
      random,
    )
  }

  /** A new identity for the controllers, and that of their predecessor, which has ended: nobody has to wait until its
   *  lease runs out. */
  async #succession(): Promise<Settings> {
    const { folder, random } = this.#options
    const ended = await readFile(folder.leaderFile, 'utf8').catch(() => undefined)
    const identity = newUuid(random)
    await writeDurably(folder.leaderFile, identity)
    return { SVCCLOUD_IDENTITY: identity, SVCCLOUD_ENDED_IDENTITY: ended }
  }

  async #startComponent(
    name: string,
    file: string,
    settings: Settings | (() => Promise<Settings>),
    made: (component: Component) => void = () => {},
  ): Promise<ReadyMessage> {
    if (this.#stopping.signal.aborted) throw new StartRefused('Stopped before everything had started.')
    const { clock, random, print, folder } = this.#options
    const component = new Component(
      {
        name,
        file: join(PROJECT, file),
        environment: async () => componentEnvironment(typeof settings === 'function' ? await settings() : settings),
        logFile: join(folder.logs, `${name}.log`),
      },
      { clock, random, print, onProcessesChanged: () => this.#recordProcesses() },
    )
    this.#components.push(component)
    made(component)
    return component.start()
  }

  /** One write after the other, so that the newest state is the one that stays. */
  #recordProcesses(): void {
    const { folder, print } = this.#options
    this.#recording = this.#recording
      .then(() =>
        recordProcesses(
          folder,
          this.#components
            .map((component) => component.process)
            .filter((record): record is ProcessRecord => record !== undefined),
        ),
      )
      .catch((error: unknown) => print(`${folder.processesFile} could not be written: ${String(error)}`))
  }
}
