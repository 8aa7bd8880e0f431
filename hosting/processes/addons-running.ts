/** The add-ons of one control plane. Each starts once it has a token of the cluster, with its own certificates for its
 *  programs' work in the cluster. The token is in a file that they read for each request. */
import { join } from 'node:path'
import type { AddonGrant, ControlPlaneState } from '../../integrations/control-planes/control.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import type { Random } from '../../kit/sys/random.ts'
import type { Addon, AddonPlace } from './addon-table.ts'
import { withCredentials } from './commands.ts'
import { kubeconfig } from '../core/configuration-files.ts'
import { openClientCertificate } from '../core/credentials.ts'
import { type AddonNeeds, userOf } from '../core/addon-parts.ts'
import { handedToOwn } from './own-programs.ts'
import type { ProgramOptions } from './programs-running.ts'
import type { ControlPlaneRecord } from './record.ts'

export interface AddonsOptions {
  readonly folder: string
  /** Add-ons that can run here. */
  readonly addons: readonly Addon[]
  /** Address of the platform's API. */
  readonly apiUrl: string
  /** Keeps a program running as the user of the control plane. `running` returns the names of those that run. */
  readonly run: (name: string, command: readonly string[], more: Omit<ProgramOptions, 'as'>) => Promise<void>
  readonly running: () => readonly string[]
  /** Lets that user read the files written here. */
  readonly give: () => Promise<void>
  readonly clock: Clock
  readonly random: Random
}

/** Inputs of one round. */
export interface AddonsRound {
  readonly record: ControlPlaneRecord
  /** Applies an add-on's needs in the cluster. */
  readonly apply: (needs: AddonNeeds) => Promise<void>
  /** PEM. */
  readonly authority: string
  /** Address of the API for programs of this machine. */
  readonly endpoint: string
}

export class RunningAddons {
  readonly #options: AddonsOptions
  /** Add-ons whose objects are in the cluster. */
  readonly #applied = new Set<string>()
  /** PEM certificates of the programs for the cluster. */
  readonly #certificates = new Map<string, string>()

  constructor(options: AddonsOptions) {
    this.#options = options
  }

  /** Versions of the running add-ons. */
  versions(): ControlPlaneState['addons'] {
    const running = this.#options.running()
    return this.#options.addons
      .filter(({ programs }) => programs.every(({ name }) => running.includes(name)))
      .map(({ name, version }) => ({ name, version }))
  }

  grants({ addons }: ControlPlaneRecord): ControlPlaneState['grants'] {
    return this.#options.addons.map(({ name }) => ({ addon: name, tokenId: addons[name]?.tokenId ?? null }))
  }

  /** Names of the running programs; a program that others depend on comes after them. */
  names(): readonly string[] {
    const running = this.#options.running()
    const known = this.#options.addons.flatMap(({ programs }) => programs.map(({ name }) => name))
    return known.filter((name) => running.includes(name)).toReversed()
  }

  can(addon: string): boolean {
    return this.#options.addons.some(({ name }) => name === addon)
  }

  /** Writes the token to the add-on's file. */
  async writeToken(addon: string, { token }: Pick<AddonGrant, 'token'>): Promise<void> {
    const { folder, give } = this.#options
    await writeDurably(join(folder, tokenFile(addon)), token)
    await give()
  }

  /** Applies everything again: objects in the cluster may have been deleted, or certificates expire. */
  applyAnew(): void {
    this.#applied.clear()
  }

  /** Starts the add-ons that have a token. */
  async start(round: AddonsRound): Promise<void> {
    for (const addon of this.#options.addons) {
      const told = round.record.addons[addon.name]
      if (told === undefined) continue
      const { apiUrl, run } = this.#options
      if (!this.#applied.has(addon.name)) {
        await this.#apply(addon, round)
        this.#applied.add(addon.name)
      }
      for (const program of addon.programs) {
        const place: AddonPlace = {
          apiUrl,
          clusterId: told.clusterId,
          zone: told.zone,
          tokenFile: tokenFile(addon.name),
          kubeconfig: kubeconfigFile(program),
        }
        const certificate = this.#certificates.get(program.name)
        const given = program.environment(place)
        const environment = certificate === undefined ? given : withCredentials(given, certificate)
        await run(program.name, program.command(place), { environment, handed: handedToOwn() })
      }
    }
  }

  async #apply(addon: Addon, { apply, authority, endpoint }: AddonsRound): Promise<void> {
    const { folder, give } = this.#options
    const { name, objects } = addon
    await apply({ name, objects, programs: addon.programs.map(({ name: user, rules }) => ({ name: user, rules })) })
    for (const program of addon.programs.filter(({ rules }) => rules.length > 0)) {
      const certificate = await openClientCertificate(this.#options, program.name, userOf(program))
      const content = JSON.stringify(kubeconfig(endpoint, authority, certificate))
      await writeDurably(join(folder, kubeconfigFile(program)), content)
      this.#certificates.set(program.name, certificate.certificate)
    }
    await give()
  }
}

/** Relative to the folder of the control plane, in which they run. */
const tokenFile = (addon: string): string => `${addon}.token`
const kubeconfigFile = ({ name }: { readonly name: string }): string => `${name}.kubeconfig`
