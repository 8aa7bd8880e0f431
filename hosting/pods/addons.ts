/** The add-ons of one control plane in pods. Each starts once it has a token of the cluster. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AddonName } from '../../integrations/control-planes/addons.ts'
import type { ControlPlaneState } from '../../integrations/control-planes/control.ts'
import { type AddonNeeds, userOf } from '../core/addon-parts.ts'
import { kubeconfig } from '../core/configuration-files.ts'
import { openClientCertificate } from '../core/credentials.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import type { Random } from '../../kit/sys/random.ts'
import { VERSION } from '../../domain/version.ts'
import { addonManifest, kubeconfigName, needsOf, TOKEN } from './addon-workloads.ts'
import { secretManifest } from './base.ts'
import type { HostCluster, Rollout } from './host-cluster.ts'
import { Deployment, Secret } from './kinds.ts'
import { ADDON_PARTS, INNER_URL } from './names.ts'
import type { PodsRecord } from './record.ts'
import { addonsOf, type HostSettings } from './settings.ts'

export interface PodsAddonsOptions {
  /** Folder of the control plane. */
  readonly folder: string
  readonly cluster: Pick<HostCluster, 'apply' | 'remove'>
  readonly settings: HostSettings
  readonly clock: Clock
  readonly random: Random
}

/** Applies the needs of an add-on in the cluster. */
export type ApplyNeeds = (needs: AddonNeeds) => Promise<void>

export class PodsAddons {
  readonly #options: PodsAddonsOptions
  readonly #known: readonly AddonName[]
  /** Kubeconfigs of the programs, for each add-on whose objects are in the cluster. */
  readonly #kubeconfigs = new Map<AddonName, Readonly<Record<string, string>>>()
  /** Workloads of add-ons that the settings no longer allow were removed. */
  #areOthersGone = false

  constructor(options: PodsAddonsOptions) {
    this.#options = options
    this.#known = addonsOf(options.settings)
  }

  can(addon: string): boolean {
    return this.#known.some((name) => name === addon)
  }

  grants({ addons }: PodsRecord): ControlPlaneState['grants'] {
    return this.#known.map((name) => ({ addon: name, tokenId: addons[name]?.tokenId ?? null }))
  }

  /** Versions of the running add-ons. */
  versions({ addons }: PodsRecord, rollouts: ReadonlyMap<string, Rollout>): ControlPlaneState['addons'] {
    return this.#known
      .filter((name) => addons[name] !== undefined && (rollouts.get(name)?.ready ?? 0) > 0)
      .map((name) => ({ name, version: VERSION }))
  }

  /** The pod gets this token once the record has its grant. */
  writeToken(addon: string, token: string): Promise<void> {
    return writeDurably(this.#tokenFile(addon), token)
  }

  /** Applies everything again: objects in the cluster may have been deleted, or certificates expire. */
  applyAnew(): void {
    this.#kubeconfigs.clear()
  }

  /** Starts the add-ons that have a token, and removes those that this host no longer offers. */
  async start(record: PodsRecord, apply: ApplyNeeds, authority: string): Promise<void> {
    const { cluster, settings } = this.#options
    for (const name of this.#known) {
      if (record.addons[name] === undefined) continue
      const kubeconfigs = this.#kubeconfigs.get(name) ?? (await this.#enter(name, apply, authority))
      this.#kubeconfigs.set(name, kubeconfigs)
      const token = await readFile(this.#tokenFile(name), 'utf8')
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

  /** Prepares an add-on's access to the cluster. Returns files by their names. */
  async #enter(name: AddonName, apply: ApplyNeeds, authority: string): Promise<Readonly<Record<string, string>>> {
    const needs = needsOf(name, this.#options.settings)
    await apply(needs)
    const files: [string, string][] = []
    for (const program of needs.programs.filter(({ rules }) => rules.length > 0)) {
      const certificate = await openClientCertificate(this.#options, program.name, userOf(program))
      files.push([kubeconfigName(program), JSON.stringify(kubeconfig(INNER_URL, authority, certificate))])
    }
    return Object.fromEntries(files)
  }

  #tokenFile(addon: string): string {
    return join(this.#options.folder, `${addon}.token`)
  }
}
