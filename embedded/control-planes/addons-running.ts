/** The add-ons of one control plane: each runs from when it has a token of the cluster, with certificates of its own
 *  for what its programs do in the cluster. The token is in a file that they read for each request. */
import { join } from 'node:path'
import type { AddonGrant, ControlPlaneState } from '../../kit/control-planes/control.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import type { Random } from '../../kit/sys/random.ts'
import type { Addon, AddonPlace } from './addon-table.ts'
import { withCredentials } from './commands.ts'
import { kubeconfig } from '../../kit/control-planes/hosting/configuration-files.ts'
import { openClientCertificate } from '../../kit/control-planes/hosting/credentials.ts'
import { applyAddon, userOf } from '../../kit/control-planes/hosting/addon-parts.ts'
import type { KubeApi } from '../../kit/control-planes/hosting/kube-api.ts'
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

  async #apply(addon: Addon, { api, authority, endpoint }: AddonsRound): Promise<void> {
    const { folder, clock } = this.#options
    await applyAddon(api, addon, clock)
    for (const program of addon.programs.filter(({ rules }) => rules.length > 0)) {
      const certificate = await openClientCertificate(this.#options, program.name, userOf(program))
      const content = JSON.stringify(kubeconfig(endpoint, authority, certificate))
      await writeDurably(join(folder, `${program.name}.kubeconfig`), content)
      this.#certificates.set(program.name, certificate.certificate)
    }
  }
}
