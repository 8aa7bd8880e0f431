/** A complete cloud on one machine: its components, the order of their start and stop, and the settings of each. The
 *  components are those of production; only their supervisor differs. */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { z } from 'zod'
import type { NodeAgentSettings } from '../agents/node/settings.ts'
import type { ApiServerSettings } from '../apiserver/settings.ts'
import type { ControllersSettings } from '../controllers/settings.ts'
import type { ControlPlanesSettings } from '../integrations/control-planes/settings.ts'
import type { ObjectStorageSettings } from '../integrations/object-storage/settings.ts'
import type { PaymentsSettings } from '../integrations/payments/settings.ts'
import { type Clock, TEST_CLOCK_VARIABLE } from '../kit/sys/clock.ts'
import { writeDurably } from '../kit/sys/durable-file.ts'
import { environment } from '../kit/sys/process.ts'
import { newBase62, newUuid, type Random } from '../kit/sys/random.ts'
import { SETTINGS_VARIABLE } from '../kit/sys/settings.ts'
import { catalogFor, inOrder, nodesLeftOut, type PlannedNode, planNodes, REGION } from './catalog.ts'
import { findKubernetes, kubernetesObstacle } from '../hosting/processes/programs.ts'
import { nodesSocketIn, prepareControlPlanes } from '../hosting/processes/settings.ts'
import { type DataFolder, endLeftovers, type ProcessRecord, recordProcesses, StartRefused } from './kit/data-folder.ts'
import type { BmcSimulator } from './bmc-simulator.ts'
import { openFakePaymentFiles } from './fake-payments/files.ts'
import { type Access, embeddedAccess, isNodeRemoved, ownAccess } from './kubernetes-access.ts'
import { type BmcAccess, EmbeddedMachine, startMachines } from './machines.ts'
import { waitForNodes } from './node-readiness.ts'
import type { HypervisorChoice, Options } from './options.ts'
import { type PortalDecision, preparePortal } from './portal.ts'
import { findEngine, NO_ENGINE } from './object-storage/program.ts'
import { prepareObjectStorage, type SupervisorSettings as PreparedObjectStorage } from './object-storage/settings.ts'
import type { NetworkDecision } from './ovn/choose.ts'
import { NODES_LISTENER } from './ovn/address-plan.ts'
import { type CloudNetwork, openNetwork, type Reachable } from './ovn/network.ts'
import { takePort } from './kit/ports.ts'
import type {
  FakePaymentsSettings,
  KubernetesSettings,
  NetworkSettings,
  NodesListener,
  PostgresSettings,
} from './kit/process-settings.ts'
import { readSealingKeys } from './sealing-keys.ts'
import { PASSED_ON, passedOn, PAYMENTS_PASSED_ON, type StartSettings } from './start-settings.ts'
import { noteFormat } from './format.ts'
import { noteStores, requireStores } from './stores.ts'
import { Component, type ReadyMessage } from './supervisor.ts'

/** Content of `endpoints.json`; paths are absolute. */
export interface Endpoints {
  readonly version: string
  readonly pid: number
  readonly api_url: string
  readonly operator_url: string
  readonly kubernetes_url: string
  readonly kubeconfig: string
  /** File with the certificate of the Kubernetes API's authority; null when the user's own kubeconfig names none. */
  readonly ca_certificate: string | null
  readonly mail_directory: string
  readonly postgres_url: string
  /** File with a bearer token for the operator listener; null when the user's own kubeconfig contains none. */
  readonly operator_token_file: string | null
  /** URL of the fake payment processor; null without one. */
  readonly fake_payments_url: string | null
  /** URL for S3 clients; null without object storage. */
  readonly object_storage_url: string | null
  /** Whether control planes of Kubernetes can run here. */
  readonly has_control_planes: boolean
  /** Current time of the cloud if it has a test clock; null otherwise. */
  readonly test_clock: string | null
  /** URL of the Redfish service of the nodes; its credentials are in `bmc/access.json` of the data folder. */
  readonly bmc_url: string
}

export interface CloudOptions {
  readonly options: Options
  readonly settings: StartSettings
  readonly hypervisor: HypervisorChoice
  /** How Open Virtual Network runs here for servers, or why it does not. */
  readonly network: NetworkDecision
  /** How far the components' clocks are ahead of this process's clock. */
  readonly aheadMilliseconds: number
  readonly folder: DataFolder
  readonly version: string
  readonly pid: number
  readonly clock: Clock
  readonly random: Random
  /** Prints one line for people. */
  readonly print: (line: string) => void
}

const PROJECT = join(import.meta.dirname, '..')
const LOOPBACK = '127.0.0.1'
const WEBHOOK_TOKEN_CHARACTERS = 43

type ApiServer = z.input<typeof ApiServerSettings>
type Controllers = z.input<typeof ControllersSettings>
type Agent = z.input<typeof NodeAgentSettings>

/** The environment of a component: that of the machine, without the settings of `npm start`. */
const machineEnvironment = (): Readonly<Record<string, string | undefined>> =>
  Object.fromEntries(
    Object.entries(environment()).filter(
      ([name]) => !name.startsWith('SVCCLOUD_') && name !== 'DATABASE_URL' && name !== 'KUBECONFIG',
    ),
  )

const logSettings = () => passedOn<{ readonly logLevel: ApiServer['logLevel'] }>(PASSED_ON.others, environment())

/** Nodes of one zone share storage; a single node does not need shared storage. */
function sharedVolumes(zone: string, nodes: readonly PlannedNode[], folder: DataFolder): string {
  return nodes.filter((node) => node.zone === zone).length > 1 ? join(folder.shared, zone) : 'none'
}

/** The address at which people reach a listener: the loopback address if it listens on all addresses. */
const reachable = (host: string): string => {
  const named = host === '0.0.0.0' ? LOOPBACK : host === '::' ? '::1' : host
  return named.includes(':') ? `[${named}]` : named
}

/** The webhook registers its own address with the Kubernetes API. A user's own cluster may be unable to reach this
 *  machine, and there the components may have the same user as the person. So without an explicit address, the
 *  controllers refuse forbidden changes. */
const webhookSettings = (
  { platformUsers }: Access,
  { host, folder, isEmbedded }: { readonly host: string; readonly folder: DataFolder; readonly isEmbedded: boolean },
): Partial<ApiServer> =>
  platformUsers.length === 0
    ? {}
    : {
        webhookHost: host,
        webhookPort: 0,
        webhookRegister: true,
        platformUsers: [...platformUsers],
        ...(isEmbedded ? { webhookTokenFile: folder.webhookTokenFile } : {}),
      }

const textOf = (message: ReadyMessage, name: string): string => {
  const value = message[name]
  if (typeof value !== 'string') throw new Error(`the ready message lacks ${name}`)
  return value
}

/** Undefined without control planes that nodes could reach. */
const nodesSocket = async ({ controlPlanes }: DataFolder): Promise<string | undefined> =>
  (await findKubernetes())?.tunnel === undefined ? undefined : nodesSocketIn(controlPlanes)

/** Simulated servers reach no control plane: whoever plays their nodes does so from this machine. */
async function simulatedNodes({ hypervisor, folder, settings }: CloudOptions): Promise<NodesListener | undefined> {
  const socket = hypervisor === 'simulated' && settings.simulatedNodes ? await nodesSocket(folder) : undefined
  return socket === undefined ? undefined : { ...NODES_LISTENER, socket }
}

interface FakePayments {
  readonly url: string
  /** Settings of its clients. */
  readonly settings: PaymentsSettings
}

interface ComponentStart<Settings> {
  /** A function if they may differ between starts. */
  readonly settings: Settings | (() => Promise<Settings>)
  /** In addition to the environment of the machine. */
  readonly environment?: Readonly<Record<string, string | undefined>>
}

interface CatalogStart {
  readonly leftOut: readonly PlannedNode[]
  readonly access: Access
  readonly databaseUrl: string
  readonly bmc: BmcAccess
}

export class Cloud {
  readonly #options: CloudOptions
  #readSealingKeys: Promise<string> | undefined
  /** Nodes of `--nodes`, and those of earlier starts. */
  #nodes: readonly PlannedNode[] = []
  /** In the order of their start. */
  readonly #components: Component[] = []
  #recording: Promise<void> = Promise.resolve()
  readonly #stopping = new AbortController()
  #bmc: BmcSimulator | undefined
  #network: CloudNetwork | undefined
  #reachable: Reachable | undefined
  #fakePayments: FakePayments | undefined
  /** Settings for the platform, or why there is none. */
  #objectStorage: ObjectStorageSettings = { objectStorageObstacle: NO_ENGINE }
  #archive: Pick<Agent, 'archiveAddress'> = {}
  #isolation: string | undefined
  #portal: PortalDecision = { obstacle: '--no-portal' }
  /** Settings for the platform, or why there are none. */
  #controlPlanes: ControlPlanesSettings = {}
  #starting: Promise<unknown> = Promise.resolve()

  constructor(options: CloudOptions) {
    this.#options = options
  }

  /** Starts everything; returns once all components serve. Throws StartRefused with a clear message for people. */
  start(): Promise<Endpoints> {
    const starting = this.#start()
    this.#starting = starting.catch(() => undefined) // start() rejects with the error
    return starting
  }

  async #start(): Promise<Endpoints> {
    const { options, folder, clock, version, pid } = this.#options
    await rm(folder.endpointsFile, { force: true }) // left by a run that was killed
    await endLeftovers(folder, clock)
    await requireStores(folder, this.#ownStores(), this.#options.settings.acceptEmptyStore)
    const port = await takePort('port', options.host, options.port)
    const operatorPort = await takePort('operator-port', LOOPBACK, options.operatorPort)
    const kubernetesPort =
      options.kubeconfig === undefined ? await takePort('kubernetes-port', LOOPBACK, options.kubernetesPort) : 0
    const leftOut = await nodesLeftOut(folder.nodes, options.nodes)
    this.#nodes = inOrder(options.nodes, [...planNodes(options.nodes), ...leftOut])
    const machines = await Promise.all(this.#nodes.map(({ name }) => EmbeddedMachine.open(name, folder, clock)))
    const bmc = await startMachines(machines, this.#options)
    this.#bmc = bmc.simulator
    const portal = this.#preparePortal()
    portal.catch(() => undefined) // thrown where it is awaited
    const objectStorage = await this.#prepareObjectStorage(`http://${reachable(options.host)}:${port}`)
    await this.#startNetwork(objectStorage?.port)
    if (options.hasFakePayments)
      this.#fakePayments = await this.#startFakePayments(`http://${reachable(options.host)}:${port}`)
    if (objectStorage !== undefined) await this.#startObjectStorage(objectStorage)
    await this.#startControlPlanes(`http://${reachable(options.host)}:${port}`)
    const databaseUrl = options.databaseUrl ?? (await this.#startPostgres())
    const access =
      options.kubeconfig === undefined
        ? await this.#startKubernetes(kubernetesPort)
        : await ownAccess(options.kubeconfig, { folder, hasOwnUsers: options.webhookHost !== undefined })
    const removed = await this.#startCatalog({ leftOut, access, databaseUrl, bmc: bmc.access })
    const running = machines.filter(({ name }) => !removed.includes(name))
    await noteStores(folder, this.#ownStores())
    this.#portal = await portal
    await Promise.all([
      this.#startApiserver(access, databaseUrl, { port, operatorPort }),
      ...running.map((machine) => this.#startAgent(machine, access)),
    ])
    await noteFormat(folder.root, databaseUrl)
    const nodes = running.map(({ name }) => name)
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
      fake_payments_url: this.#fakePayments?.url ?? null,
      object_storage_url: this.#objectStorage.objectStorageEndpoint ?? null,
      has_control_planes: this.#controlPlanes.controlPlanesUrl !== undefined,
      test_clock:
        this.#options.aheadMilliseconds === 0
          ? null
          : new Date(clock.now().getTime() + this.#options.aheadMilliseconds).toISOString(),
      bmc_url: bmc.access.url,
    }
    await writeDurably(folder.endpointsFile, `${JSON.stringify(endpoints, null, 2)}\n`)
    return endpoints
  }

  async #preparePortal(): Promise<PortalDecision> {
    const { options, folder, print } = this.#options
    if (!options.hasPortal) return this.#portal
    return preparePortal({ print, signal: this.#stopping.signal, logFile: join(folder.logs, 'portal.log') })
  }

  /** The stores in the folder. A store that the user has given instead is not among them. */
  #ownStores() {
    const { databaseUrl, kubeconfig } = this.#options.options
    return [
      ...(databaseUrl === undefined ? (['postgres'] as const) : []),
      ...(kubeconfig === undefined ? (['kubernetes'] as const) : []),
    ]
  }

  /** With the port of object storage, where it is. */
  async #startNetwork(objectStoragePort: number | undefined): Promise<void> {
    const { options, folder, network, print } = this.#options
    if (!('programs' in network)) return
    const nodes = this.#nodes
    const { programs } = network
    this.#network = await openNetwork({
      ...options,
      folder,
      nodes,
      programs,
      nodesSocket: await nodesSocket(folder),
      objectStorage: objectStoragePort === undefined ? undefined : { host: options.host, port: objectStoragePort },
    })
    this.#reachable = this.#network.reachable(
      await this.#startComponent<z.input<typeof NetworkSettings>>('network', 'embedded/ovn/main.ts', {
        settings: { ...logSettings(), ...this.#network.settings },
        environment: { PATH: programs.path },
      }),
    )
    if (this.#network.additions !== undefined) print(this.#network.additions)
  }

  /** Starts the controllers with the catalog of this start. Returns the removed nodes, which get no agent. */
  async #startCatalog({ leftOut, access, databaseUrl, bmc }: CatalogStart): Promise<readonly string[]> {
    const { options, folder, print } = this.#options
    const removed = await this.#reportLeftOut(leftOut, access)
    const zonesOfBefore = leftOut.filter(({ name }) => !removed.includes(name)).map(({ zone }) => zone)
    await writeDurably(folder.catalogFile, await catalogFor(options.nodes, bmc, this.#network, zonesOfBefore))
    const { catalog_differences: differences } = await this.#startControllers(access, databaseUrl)
    for (const difference of Array.isArray(differences) ? differences : []) print(`NOTE: ${difference}`)
    return removed
  }

  /** Reports the state of the nodes that `--nodes` omits. Returns the removed ones, which have no agent. */
  async #reportLeftOut(leftOut: readonly PlannedNode[], access: Access): Promise<readonly string[]> {
    const removed: string[] = []
    for (const { name } of leftOut) {
      const folder = join(this.#options.folder.nodes, name)
      if (await isNodeRemoved(access, name)) {
        removed.push(name)
        this.#options.print(`NOTE: Node ${name} was removed. Delete ${folder} when you need nothing in it.`)
      } else
        this.#options.print(
          `NOTE: --nodes leaves out ${name}, which keeps running: its data is in ${folder}. ` +
            'docs/nodes.md says how to remove a node.',
        )
    }
    return removed
  }

  /** How servers are reached on this machine, for people; undefined when each has its own port. */
  get serversAt(): string | undefined {
    return this.#reachable?.text
  }

  get portal(): PortalDecision {
    return this.#portal
  }

  /** The isolation between tenants of object storage, for people; undefined without object storage. */
  get isolation(): string | undefined {
    return this.#isolation
  }

  /** Stops everything in reverse order of the start. Guests keep running, except in an ephemeral cloud. */
  async stop(): Promise<void> {
    const { folder } = this.#options
    this.#stopping.abort()
    await this.#bmc?.stop()
    const stores = this.#components.filter(({ name }) =>
      ['network', 'postgres', 'kubernetes', 'object-storage', 'control-planes'].includes(name),
    )
    await Promise.all(
      this.#components.filter((component) => !stores.includes(component)).map((component) => component.stop()),
    )
    for (const store of stores.toReversed()) await store.stop()
    await this.#starting // a start in progress writes files until it notices
    await this.#recording
    for (const file of [folder.endpointsFile, folder.processesFile]) await rm(file, { force: true })
  }

  /** Shared by all components, even when two of them need it at the same time. */
  #sealingKeys(databaseUrl: string): Promise<string> {
    const { folder, random } = this.#options
    const { sealingKeys: keys, lostSealingKeys: acceptedLosses } = this.#options.settings
    return (this.#readSealingKeys ??=
      keys === undefined ? readSealingKeys(folder, { databaseUrl, acceptedLosses, random }) : Promise.resolve(keys))
  }

  #payments(): PaymentsSettings {
    return this.#fakePayments?.settings ?? passedOn<PaymentsSettings>(PAYMENTS_PASSED_ON, environment())
  }

  async #startFakePayments(apiUrl: string): Promise<FakePayments> {
    const { folder, random } = this.#options
    const files = await openFakePaymentFiles(folder.fakePayments, random)
    const { stripeKeyFile, stripeWebhookSecretFile } = files.settings
    const ready = await this.#startComponent<z.input<typeof FakePaymentsSettings>>(
      'fake-payments',
      'embedded/fake-payments/main.ts',
      {
        settings: {
          ...logSettings(),
          stripeKeyFile,
          stripeWebhookSecretFile,
          data: folder.fakePayments,
          port: files.port,
          webhookUrl: `${apiUrl}/v1/webhooks/payments`,
        },
      },
    )
    const url = textOf(ready, 'url')
    return { url, settings: { ...files.settings, stripeUrl: url } }
  }

  /** Undefined if its engine is not installed: the zones report why they have none. */
  async #prepareObjectStorage(apiUrl: string): Promise<PreparedObjectStorage | undefined> {
    const { folder, options, random, settings } = this.#options
    const program = await findEngine(settings.versitygw)
    if (program === undefined) return undefined
    return prepareObjectStorage({
      folder: folder.objectStorage,
      program,
      host: options.host,
      port: options.objectStoragePort,
      name: settings.objectStorageHost,
      zones: [...new Set(this.#nodes.map(({ zone }) => zone))],
      portalUrl: passedOn<ApiServer>(['publicUrl'], environment()).publicUrl ?? apiUrl,
      random,
    })
  }

  async #startObjectStorage({ process, platform, agent }: PreparedObjectStorage): Promise<void> {
    const { settings } = this.#options
    const ready = await this.#startComponent<typeof process>('object-storage', 'embedded/object-storage/main.ts', {
      settings: { ...logSettings(), ...process, cgroup: settings.objectStorageCgroup },
    })
    this.#isolation = textOf(ready, 'isolation')
    this.#objectStorage = platform
    this.#archive = agent
  }

  /** Starts them if their programs are installed; otherwise the regions report why they have none. */
  async #startControlPlanes(apiUrl: string): Promise<void> {
    const { folder, options, random, settings } = this.#options
    const obstacle = await kubernetesObstacle()
    if (obstacle !== undefined) {
      this.#controlPlanes = { controlPlanesObstacle: obstacle }
      return
    }
    const { process, platform } = await prepareControlPlanes({
      folder: folder.controlPlanes,
      host: options.host,
      regions: [REGION],
      random,
      apiUrl,
      nodesListener: this.#network?.nodesListener ?? (await simulatedNodes(this.#options)),
      memoryMebibytes: settings.controlPlanesMemoryMebibytes,
      playgroundsPort: settings.playgroundsPort,
    })
    await this.#startComponent<typeof process>('control-planes', 'hosting/processes/main.ts', {
      settings: {
        ...logSettings(),
        ...process,
        imageCache: settings.imageCache ?? folder.images,
        playgroundsDomain: settings.playgroundsDomain,
        playgroundsAccelerator: settings.playgroundsAccelerator,
      },
      environment: { SVCCLOUD_TOOLS: environment()['SVCCLOUD_TOOLS'] },
    })
    this.#controlPlanes = platform
  }

  #startControllers(access: Access, databaseUrl: string): Promise<ReadyMessage> {
    return this.#startComponent<Controllers>('controllers', 'controllers/main.ts', {
      settings: async () => {
        const { stripeUrl, stripeKeyFile } = this.#payments()
        return {
          ...passedOn<Controllers>(PASSED_ON.controllers, environment()),
          sealingKeys: await this.#sealingKeys(databaseUrl),
          stripeUrl,
          stripeKeyFile,
          ...this.#objectStorage,
          ...this.#controlPlanes,
          ...(await this.#succession()),
          databaseUrl,
          kubeconfig: access.controllers,
          installCrds: true,
          catalogFile: this.#options.folder.catalogFile,
          ...(this.#network === undefined
            ? {}
            : { ovnNorthbound: this.#network.northbound, ovnSouthbound: this.#network.southbound }),
        }
      },
    })
  }

  async #startApiserver(
    access: Access,
    databaseUrl: string,
    { port, operatorPort }: { readonly port: number; readonly operatorPort: number },
  ): Promise<ReadyMessage> {
    const { options, folder, settings } = this.#options
    return this.#startComponent<ApiServer>('apiserver', 'apiserver/main.ts', {
      settings: {
        ...(settings.smtpUrl === undefined ? { mailDirectory: folder.mail } : {}),
        ...passedOn<ApiServer>(PASSED_ON.apiserver, environment()),
        ...this.#reachable?.settings,
        ...this.#payments(),
        ...this.#objectStorage,
        ...this.#controlPlanes,
        sealingKeys: await this.#sealingKeys(databaseUrl),
        host: options.host,
        port,
        operatorHost: LOOPBACK,
        operatorPort,
        databaseUrl,
        kubeconfig: access.apiserver,
        // The built one is that of the installation: if it is deleted, the API is served without it.
        ...('directory' in this.#portal ? {} : { portalDirectory: 'none' }),
        ...webhookSettings(access, {
          host: options.webhookHost ?? LOOPBACK,
          folder,
          isEmbedded: options.kubeconfig === undefined,
        }),
      },
    })
  }

  #startAgent(machine: EmbeddedMachine, access: Access): Promise<ReadyMessage> {
    const { options, folder, hypervisor, settings } = this.#options
    const { name } = machine
    const zone = this.#nodes.find((node) => node.name === name)?.zone ?? ''
    const shared = settings.cephPool === undefined ? sharedVolumes(zone, this.#nodes, folder) : 'none'
    const otherZones = [...new Set(this.#nodes.map((node) => node.zone))].filter((other) => other !== zone)
    const network = this.#network?.agent(name)
    return this.#startComponent<Agent>(
      `agent-${name}`,
      'agents/node/main.ts',
      {
        settings: async () => ({
          ...passedOn<Agent>(PASSED_ON.agent, environment()),
          powerCycle: machine.cycle,
          nodeName: name,
          kubeconfig: access.agent(name),
          data: join(folder.nodes, name),
          hypervisor,
          imageCache: settings.imageCache ?? folder.images,
          stopGuests: options.isEphemeral,
          ...(access.tokenFile === null ? {} : { metricsTokenFile: access.tokenFile }),
          backupStore: settings.backupStore ?? join(folder.backups, zone),
          // The folders of all zones are on this machine.
          backupSources:
            settings.backupSources ??
            (settings.backupStore === undefined
              ? Object.fromEntries(otherZones.map((other) => [other, join(folder.backups, other)]))
              : {}),
          sharedVolumes: settings.sharedVolumes ?? shared,
          ...this.#archive,
          ...(network?.settings ?? this.#networkObstacle()),
        }),
        environment: network?.environment ?? {},
      },
      (component) => machine.run(component),
    )
  }

  #networkObstacle(): Pick<Agent, 'guestNetworkObstacle'> {
    const { network } = this.#options
    return 'obstacle' in network ? { guestNetworkObstacle: network.obstacle } : {}
  }

  async #startPostgres(): Promise<string> {
    const { folder } = this.#options
    let port = 0
    const ready = await this.#startComponent<z.input<typeof PostgresSettings>>(
      'postgres',
      'embedded/postgres-main.ts',
      { settings: async () => ({ ...logSettings(), data: folder.postgres, port }) },
    )
    // A restarted component uses the same port, because the others have its URL.
    port = Number(ready['port'])
    return textOf(ready, 'url')
  }

  async #startKubernetes(port: number): Promise<Access> {
    const { folder, random } = this.#options
    await writeDurably(folder.webhookTokenFile, newBase62(random, WEBHOOK_TOKEN_CHARACTERS))
    const ready = await this.#startComponent<z.input<typeof KubernetesSettings>>(
      'kubernetes',
      'embedded/kubernetes/main.ts',
      {
        settings: {
          ...logSettings(),
          webhookTokenFile: folder.webhookTokenFile,
          data: folder.kubernetes,
          host: LOOPBACK,
          port,
        },
      },
    )
    const server = {
      url: textOf(ready, 'url'),
      kubeconfig: textOf(ready, 'kubeconfig'),
      authorityFile: textOf(ready, 'ca_certificate'),
    }
    return embeddedAccess(
      server,
      this.#nodes.map(({ name }) => name),
      folder,
      random,
    )
  }

  /** A new identity for the controllers, and that of their predecessor, which has ended: the new ones need not wait for
   *  its lease to expire. */
  async #succession(): Promise<Pick<Controllers, 'identity' | 'endedIdentity'>> {
    const { folder, random } = this.#options
    const ended = await readFile(folder.leaderFile, 'utf8').catch(() => undefined)
    const identity = newUuid(random)
    try {
      await writeDurably(folder.leaderFile, identity)
    } catch (error) {
      // Then the next start must wait until the lease expires.
      this.#options.print(`${folder.leaderFile} could not be written: ${String(error)}`)
    }
    return { identity, endedIdentity: ended }
  }

  async #startComponent<Settings extends object>(
    name: string,
    file: string,
    { settings, environment: own = {} }: ComponentStart<Settings>,
    onCreated: (component: Component) => void = () => {},
  ): Promise<ReadyMessage> {
    if (this.#stopping.signal.aborted) throw new StartRefused('Stopped before everything had started.')
    const { clock, random, print, folder, aheadMilliseconds } = this.#options
    const component = new Component(
      {
        name,
        file: join(PROJECT, file),
        environment: async () => ({
          ...machineEnvironment(),
          ...own,
          [SETTINGS_VARIABLE]: JSON.stringify(typeof settings === 'function' ? await settings() : settings),
          ...(aheadMilliseconds === 0 ? {} : { [TEST_CLOCK_VARIABLE]: String(aheadMilliseconds) }),
        }),
        logFile: join(folder.logs, `${name}.log`),
      },
      { clock, random, print, onProcessesChanged: () => this.#recordProcesses() },
    )
    this.#components.push(component)
    onCreated(component)
    return component.start()
  }

  /** Writes one after the other, so that the newest state is stored last. */
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
