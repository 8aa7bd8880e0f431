/** The add-ons of one control plane: each runs from when it has a token of the cluster, with certificates of its own
 *  for what its programs do in the cluster. The token is in a file that they read for each request. */
import { join } from 'node:path'
import type { AddonGrant, ControlPlaneState } from '../../kit/control-planes/control.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import type { Random } from '../../kit/sys/random.ts'
import type { Addon, AddonPlace, AddonProgram } from './addon-table.ts'
import { withCredentials } from './commands.ts'
import { kubeconfig } from '../../kit/control-planes/hosting/configuration-files.ts'
import { openClientCertificate } from '../../kit/control-planes/hosting/credentials.ts'
import { apply, type KubeApi, send } from '../../kit/control-planes/hosting/kube-api.ts'
import type { RunningPrograms } from './programs-running.ts'
import type { ControlPlaneRecord } from './record.ts'

export interface AddonsOptions {
  readonly folder: string
  /** Those that can run here. */
  readonly addons: readonly Addon[]
  /** Of the platform. */
  readonly apiUrl: string
  readonly programs: RunningPrograms
  readonly clock: Clock
  readonly random: Random
}

/** What the round of now has to know. */
export interface AddonsRound {
  readonly record: ControlPlaneRecord
  readonly api: KubeApi
  /** PEM. */
  readonly authority: string
  /** Of the API, as programs of this machine reach it. */
  readonly endpoint: string
}

const RBAC = '/apis/rbac.authorization.k8s.io/v1'
const RBAC_GROUP = 'rbac.authorization.k8s.io'
const [NOT_FOUND, CONFLICT] = [404, 409]
/** How long a kind that was just defined may take until it is served, and between two looks. */
const [SERVED_MILLISECONDS, LOOK_MILLISECONDS] = [5_000, 100]
/** No token of the platform names such a user: names of the system are not for people. */
const userOf = ({ name }: AddonProgram): string => `system:svccloud:${name}`

export class RunningAddons {
  readonly #options: AddonsOptions
  /** Whose objects are in the cluster. */
  readonly #applied = new Set<string>()
  /** PEM that each program gets into the cluster with. */
  readonly #certificates = new Map<string, string>()

  constructor(options: AddonsOptions) {
    this.#options = options
  }

  /** Of those that run. */
  versions(): ControlPlaneState['addons'] {
    const running = this.#options.programs.names()
    return this.#options.addons
      .filter(({ programs }) => programs.every(({ name }) => running.includes(name)))
      .map(({ name, version }) => ({ name, version }))
  }

  grants({ addons }: ControlPlaneRecord): ControlPlaneState['grants'] {
    return this.#options.addons.map(({ name }) => ({ addon: name, tokenId: addons[name]?.tokenId ?? null }))
  }

  /** Their programs that run, those that others wait for last. */
  names(): readonly string[] {
    const running = this.#options.programs.names()
    const known = this.#options.addons.flatMap(({ programs }) => programs.map(({ name }) => name))
    return known.filter((name) => running.includes(name)).toReversed()
  }

  can(addon: string): boolean {
    return this.#options.addons.some(({ name }) => name === addon)
  }

  /** Its file has this token from now on. */
  writeToken(addon: string, { token }: Pick<AddonGrant, 'token'>): Promise<void> {
    return writeDurably(this.#tokenFile(addon), token)
  }

  /** What the cluster holds of them may be gone, or their certificates end. */
  applyAnew(): void {
    this.#applied.clear()
  }

  /** Those that have a token run. */
  async start(round: AddonsRound): Promise<void> {
    for (const addon of this.#options.addons) {
      const told = round.record.addons[addon.name]
      if (told === undefined) continue
      const { folder, apiUrl, programs } = this.#options
      if (!this.#applied.has(addon.name)) {
        await this.#apply(addon, round)
        this.#applied.add(addon.name)
      }
      for (const program of addon.programs) {
        const place: AddonPlace = {
          ...{ folder, apiUrl, clusterId: told.clusterId, zone: told.zone },
          ...{ tokenFile: this.#tokenFile(addon.name), kubeconfig: join(folder, `${program.name}.kubeconfig`) },
        }
        const certificate = this.#certificates.get(program.name)
        const environment = program.environment(place)
        await programs.start(
          program.name,
          program.command(place),
          certificate === undefined ? environment : withCredentials(environment, certificate),
        )
      }
    }
  }

  #tokenFile(addon: string): string {
    return join(this.#options.folder, `${addon}.token`)
  }

  async #apply({ programs, objects }: Addon, { api, authority, endpoint }: AddonsRound): Promise<void> {
    const { folder } = this.#options
    for (const { path, isOwn, body } of objects)
      if (isOwn) await this.#make(api, path, body)
      else await apply(api, path, body)
    for (const program of programs.filter(({ rules }) => rules.length > 0)) {
      await allow(api, program)
      const certificate = await openClientCertificate(this.#options, program.name, userOf(program))
      const content = JSON.stringify(kubeconfig(endpoint, authority, certificate))
      await writeDurably(join(folder, `${program.name}.kubeconfig`), content)
      this.#certificates.set(program.name, certificate.certificate)
    }
  }

  /** Unless it is there. Its kind may have been defined a moment ago. */
  async #make(api: KubeApi, path: string, body: object): Promise<void> {
    const { clock } = this.#options
    const deadline = clock.monotonicMilliseconds() + SERVED_MILLISECONDS
    for (;;) {
      const isLast = clock.monotonicMilliseconds() > deadline
      const { status } = await send(api, 'POST', path, { body, accepted: isLast ? [CONFLICT] : [CONFLICT, NOT_FOUND] })
      if (status !== NOT_FOUND) return
      await clock.sleep(LOOK_MILLISECONDS)
    }
  }
}

/** In the whole cluster, by its rules. */
async function allow(api: KubeApi, program: AddonProgram): Promise<void> {
  const named = { apiVersion: `${RBAC_GROUP}/v1`, metadata: { name: `svccloud:${program.name}` } }
  await apply(api, `${RBAC}/clusterroles`, { ...named, ...{ kind: 'ClusterRole', rules: program.rules } })
  await apply(api, `${RBAC}/clusterrolebindings`, {
    ...{ ...named, kind: 'ClusterRoleBinding' },
    ...{ roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: named.metadata.name } },
    ...{ subjects: [{ apiGroup: RBAC_GROUP, kind: 'User', name: userOf(program) }] },
  })
}
