/** The add-ons of one control plane in pods. Each starts once it has a token of the cluster. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AddonName } from '../../integrations/control-planes/addons.ts'
import type { ControlPlaneState } from '../../integrations/control-planes/control.ts'
import {
  type ApplyNeeds,
  PlaneAddons,
  type PlaneAddonsOptions,
  tokenFile,
  kubeconfigFile,
} from '../core/plane-addons.ts'
import { VERSION } from '../../domain/version.ts'
import { addonManifest, needsOf, TOKEN } from './addon-workloads.ts'
import { secretManifest } from './base.ts'
import type { HostCluster, Rollout } from './host-cluster.ts'
import { Deployment, Secret } from './kinds.ts'
import { ADDON_PARTS, INNER_URL } from './names.ts'
import type { PodsRecord } from './record.ts'
import { addonsOf, type HostSettings } from './settings.ts'

export interface PodsAddonsOptions extends PlaneAddonsOptions {
  readonly cluster: Pick<HostCluster, 'apply' | 'remove'>
  readonly settings: HostSettings
}

export class PodsAddons extends PlaneAddons {
  readonly #options: PodsAddonsOptions
  readonly #known: readonly AddonName[]
  /** Kubeconfigs of the programs, for each add-on whose objects are in the cluster. */
  readonly #kubeconfigs = new Map<AddonName, Readonly<Record<string, string>>>()
  /** Workloads of add-ons that the settings no longer allow were removed. */
  #areOthersGone = false

  constructor(options: PodsAddonsOptions) {
    const known = addonsOf(options.settings)
    super(options, known)
    this.#options = options
    this.#known = known
  }

  /** Versions of the running add-ons. */
  versions({ addons }: PodsRecord, rollouts: ReadonlyMap<string, Rollout>): ControlPlaneState['addons'] {
    return this.#known
      .filter((name) => addons[name] !== undefined && (rollouts.get(name)?.ready ?? 0) > 0)
      .map((name) => ({ name, version: VERSION }))
  }

  override applyAnew(): void {
    this.#kubeconfigs.clear()
  }

  /** Starts the add-ons that have a token, and removes those that this host no longer offers. */
  async start(record: PodsRecord, apply: ApplyNeeds, authority: string): Promise<void> {
    const { cluster, folder, settings } = this.#options
    for (const name of this.#known) {
      if (record.addons[name] === undefined) continue
      const kubeconfigs = this.#kubeconfigs.get(name) ?? (await this.#kubeconfigsOf(name, apply, authority))
      this.#kubeconfigs.set(name, kubeconfigs)
      const token = await readFile(join(folder, tokenFile(name)), 'utf8')
      await cluster.apply([
        secretManifest(record, name, { ...kubeconfigs, [TOKEN]: token }),
        addonManifest(record, settings, name, Object.values(kubeconfigs)),
      ])
    }
    if (this.#areOthersGone) return
    for (const name of ADDON_PARTS.filter((part) => !this.can(part)))
      for (const type of [Deployment, Secret]) await cluster.remove(type, name)
    this.#areOthersGone = true
  }

  /** By their names in the Secret. */
  async #kubeconfigsOf(
    name: AddonName,
    apply: ApplyNeeds,
    authority: string,
  ): Promise<Readonly<Record<string, string>>> {
    const needs = needsOf(name, this.#options.settings)
    const entered = await this.enter(needs, { apply, authority, endpoint: INNER_URL })
    return Object.fromEntries(entered.map(({ program, kubeconfig }) => [kubeconfigFile(program), kubeconfig]))
  }
}
