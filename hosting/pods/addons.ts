/** The add-ons of one control plane in pods: each runs from when it has a token of the cluster. */
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
  /** Of the control plane. */
  readonly folder: string
  readonly cluster: Pick<HostCluster, 'apply' | 'remove'>
  readonly settings: HostSettings
  readonly clock: Clock
  readonly random: Random
}

/** Has the cluster have what an add-on needs. */
export type ApplyNeeds = (needs: AddonNeeds) => Promise<void>

export class PodsAddons {
  readonly #options: PodsAddonsOptions
  readonly #known: readonly AddonName[]
  /** By add-on whose objects are in the cluster: what its programs get in with. */
  readonly #kubeconfigs = new Map<AddonName, Readonly<Record<string, string>>>()
  /** What ran by other settings is gone. */
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

  /** Of those that run. */
  versions({ addons }: PodsRecord, rollouts: ReadonlyMap<string, Rollout>): ControlPlaneState['addons'] {
    return this.#known
      .filter((name) => addons[name] !== undefined && (rollouts.get(name)?.ready ?? 0) > 0)
      .map((name) => ({ name, version: VERSION }))
  }

  /** Its pod has this token soon, once the record says of whom it is. */
  writeToken(addon: string, token: string): Promise<void> {
    return writeDurably(this.#tokenFile(addon), token)
  }

  /** What the cluster holds of them may be gone, or their certificates end. */
  applyAnew(): void {
    this.#kubeconfigs.clear()
  }

  /** Those that have a token run; those that do not run here any more are gone. */
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

  /** Answers files by their names. */
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
