/** Keeps the guest of one playground: starts it from the template, joins it to its control plane, and applies the
 *  limits of workloads. */
import { join } from 'node:path'
import { isOwnRequest } from '../../../domain/node-pool/rules.ts'
import type { ControlPlaneGuest } from '../../../integrations/control-planes/control.ts'
import { DNS_SERVICE_NUMBER, NODE_API, serviceAddress } from '../../../integrations/control-planes/control.ts'
import type { Clock } from '../../../kit/sys/clock.ts'
import { tied } from '../../../embedded/kit/daemon.ts'
import type { ClusterReading } from '../../core/reading/tasks.ts'
import type { RunningPrograms } from '../programs-running.ts'
import type { ControlPlaneRecord } from '../record.ts'
import { GATEWAY, GUEST_ADDRESS, GUEST_FILES, type GuestSize, guestCommand, userIdOf } from './machine.ts'
import { type GuestTemplates, inGuest, prepareGuest } from './template.ts'

export interface GuestKeeperOptions {
  /** Folder of the control plane. */
  readonly folder: string
  readonly guest: ControlPlaneGuest
  readonly templates: GuestTemplates
  readonly size: GuestSize
  /** Domain at which this machine serves its apps. */
  readonly appDomain: string
  readonly port: number
  readonly programs: RunningPrograms
  readonly record: () => ControlPlaneRecord
  /** Undefined while its API does not answer. */
  readonly cluster: () => ClusterReading | undefined
  readonly authority: () => string | undefined
  readonly clock: Clock
  readonly signal: AbortSignal
}

export const GUEST = 'guest'
const POOL = 'guest'
const MACHINE_SCRIPT = '/usr/libexec/svccloud/machine'
const JOIN_SECONDS = 900
const DELIVERY_MILLISECONDS = 240_000
const [BUSY_MILLISECONDS, LOOK_MILLISECONDS] = [500, 5_000]
const TOKEN_ID_LETTERS = 6

export class GuestKeeper {
  readonly #options: GuestKeeperOptions
  #isDelivered = false
  #hasToken = true
  isReady = false
  /** Why it is not ready, for people. */
  detail = 'its guest is being made'

  constructor(options: GuestKeeperOptions) {
    this.#options = options
  }

  /** Runs until the signal aborts. */
  async keep(): Promise<void> {
    const { clock, signal } = this.#options
    while (!signal.aborted) {
      try {
        this.detail = (await this.#look()) ?? ''
      } catch (error) {
        this.detail = error instanceof Error ? error.message : String(error)
      }
      if (!signal.aborted) await clock.sleep(this.isReady ? LOOK_MILLISECONDS : BUSY_MILLISECONDS, signal)
    }
  }

  /** Returns what it waits for. */
  async #look(): Promise<string | undefined> {
    const { templates, programs, guest, size, signal } = this.#options
    const template = await templates.find()
    if (template === undefined) return 'the template of guests is being made, once for this host'
    const { endpointPort: api, tunnel } = this.#options.record()
    if (tunnel === null || signal.aborted) return 'the tunnel to its guest'
    const [folder, userId] = [join(this.#options.folder, GUEST), userIdOf(api)]
    await prepareGuest(folder, template, userId)
    const ports = { api, tunnel: tunnel.agents }
    await programs.start(GUEST, tied(guestCommand({ ...template, ...size, folder, userId, ports })))
    const server = this.#options.cluster()
    if (server === undefined) return 'its control plane to answer'
    const node = (await server.ask('nodes')).find(({ name }) => name === guest.name)
    if (node === undefined && !this.#isDelivered) await this.#deliver(server, folder)
    for (const request of await server.ask('servingRequests'))
      if (isOwnRequest(request, { name: guest.name, addresses: [GUEST_ADDRESS] }))
        await server.ask('approveServing', request.name)
    this.isReady = node?.isReady === true
    if (!this.isReady) return 'its node to be ready'
    await this.#settle(server)
    return undefined
  }

  async #settle(server: ClusterReading): Promise<void> {
    const { guest, appDomain, port } = this.#options
    if (this.#hasToken) await server.ask('removeJoinToken', this.#tokenId(), POOL)
    this.#hasToken = false
    await server.ask('settleGuest', guest, { hostname: `${guest.name}.${appDomain}`, port })
  }

  #tokenId(): string {
    return this.#options.record().desired.id.replaceAll('-', '').slice(0, TOKEN_ID_LETTERS)
  }

  /** Delivers through the guest's port, so that no disk ever holds the token. First replaces what all copies of the
   *  template have in common. */
  async #deliver(server: ClusterReading, folder: string): Promise<void> {
    const { clock, guest, authority, signal } = this.#options
    const { desired } = this.#options.record()
    const now = clock.now()
    const { token } = await server.ask('joinToken', this.#tokenId(), POOL, JOIN_SECONDS)
    const [podCidr = ''] = desired.podCidrs
    const [serviceCidr = ''] = desired.serviceCidrs
    const document = {
      machine: desired.id,
      generation: 1,
      fingerprint: desired.id,
      kubernetes: {
        release: desired.release,
        nodeName: guest.name,
        nodeAddress: GUEST_ADDRESS,
        podCidr,
        serviceCidr,
        endpoint: `https://${GATEWAY.address}:${GATEWAY.api}`,
        tunnel: { host: GATEWAY.address, port: GATEWAY.tunnel },
        localApi: NODE_API,
        certificateAuthority: authority() ?? '',
        dnsAddress: serviceAddress(serviceCidr, DNS_SERVICE_NUMBER) ?? '',
        // Without a route to the outside, the node itself needs a separate route to services. The destination is
        // selected on the way.
        routes: [{ to: serviceCidr, via: GATEWAY.address }],
        taints: [],
        bootstrapToken: token,
      },
    }
    const request = Buffer.from(JSON.stringify({ do: 'apply', document })).toString('base64')
    const script = `date -s @${Math.floor(now.getTime() / 1_000)} > /dev/null
rm -f /etc/machine-id && systemd-machine-id-setup > /dev/null 2>&1
hostname ${guest.name}
echo ${request} | base64 -d | ${MACHINE_SCRIPT} > /run/svccloud-answer
grep -q '"detail":""' /run/svccloud-answer || { cat /run/svccloud-answer >&2; exit 1; }
`
    await inGuest(join(folder, GUEST_FILES.agent), script, { clock, signal, milliseconds: DELIVERY_MILLISECONDS })
    this.#isDelivered = true
  }
}
