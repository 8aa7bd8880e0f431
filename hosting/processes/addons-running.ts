/** The add-ons of one control plane as programs of this machine. Their token is in a file that they read for each
 *  request. */
import { join } from 'node:path'
import type { ControlPlaneState } from '../../integrations/control-planes/control.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import {
  type ApplyNeeds,
  kubeconfigFile,
  PlaneAddons,
  type PlaneAddonsOptions,
  tokenFile,
} from '../core/plane-addons.ts'
import type { Addon, AddonPlace } from './addon-table.ts'
import { withCredentials } from './commands.ts'
import { handedToOwn } from './own-programs.ts'
import type { ProgramOptions } from './programs-running.ts'
import type { ControlPlaneRecord } from './record.ts'

export interface AddonsOptions extends PlaneAddonsOptions {
  /** Add-ons that can run here. */
  readonly addons: readonly Addon[]
  /** Address of the platform's API. */
  readonly apiUrl: string
  /** Keeps a program running as the user of the control plane. `running` returns the names of those that run. */
  readonly run: (name: string, command: readonly string[], more: Omit<ProgramOptions, 'as'>) => Promise<void>
  readonly running: () => readonly string[]
  /** Lets that user read the files written here. */
  readonly give: () => Promise<void>
}

/** Inputs of one round. */
export interface AddonsRound {
  readonly record: ControlPlaneRecord
  readonly apply: ApplyNeeds
  /** PEM. */
  readonly authority: string
  /** Address of the API for programs of this machine. */
  readonly endpoint: string
}

export class RunningAddons extends PlaneAddons {
  readonly #options: AddonsOptions
  /** Add-ons whose objects are in the cluster. */
  readonly #applied = new Set<string>()
  /** PEM certificates of the programs for the cluster. */
  readonly #certificates = new Map<string, string>()

  constructor(options: AddonsOptions) {
    super(
      options,
      options.addons.map(({ name }) => name),
    )
    this.#options = options
  }

  /** Versions of the running add-ons. */
  versions(): ControlPlaneState['addons'] {
    const running = this.#options.running()
    return this.#options.addons
      .filter(({ programs }) => programs.every(({ name }) => running.includes(name)))
      .map(({ name, version }) => ({ name, version }))
  }

  /** Names of the running programs; a program that others depend on comes after them. */
  names(): readonly string[] {
    const running = this.#options.running()
    const known = this.#options.addons.flatMap(({ programs }) => programs.map(({ name }) => name))
    return known.filter((name) => running.includes(name)).toReversed()
  }

  override async writeToken(addon: string, token: string): Promise<void> {
    await super.writeToken(addon, token)
    await this.#options.give()
  }

  override applyAnew(): void {
    this.#applied.clear()
  }

  /** Starts the add-ons that have a token. */
  async start(round: AddonsRound): Promise<void> {
    for (const addon of this.#options.addons) {
      const addonRecord = round.record.addons[addon.name]
      if (addonRecord === undefined) continue
      const { apiUrl, run } = this.#options
      if (!this.#applied.has(addon.name)) {
        await this.#apply(addon, round)
        this.#applied.add(addon.name)
      }
      for (const program of addon.programs) {
        const place: AddonPlace = {
          apiUrl,
          clusterId: addonRecord.clusterId,
          zone: addonRecord.zone,
          tokenFile: tokenFile(addon.name),
          kubeconfig: kubeconfigFile(program.name),
        }
        const certificate = this.#certificates.get(program.name)
        const variables = program.environment(place)
        const environment = certificate === undefined ? variables : withCredentials(variables, certificate)
        await run(program.name, program.command(place), { environment, handed: handedToOwn() })
      }
    }
  }

  async #apply({ name, objects, programs }: Addon, round: AddonsRound): Promise<void> {
    const { folder, give } = this.#options
    const users = programs.map(({ name: user, rules }) => ({ name: user, rules }))
    for (const { program, certificate, kubeconfig } of await this.enter({ name, objects, programs: users }, round)) {
      await writeDurably(join(folder, kubeconfigFile(program)), kubeconfig)
      this.#certificates.set(program, certificate.certificate)
    }
    await give()
  }
}
