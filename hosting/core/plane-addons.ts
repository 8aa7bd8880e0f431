/** The add-ons of one control plane, regardless of how their programs run. Each starts once it has a token of the
 *  cluster, with its own certificates for its programs' work in the cluster. */
import { join } from 'node:path'
import type { AddonName } from '../../integrations/control-planes/addons.ts'
import type { ControlPlaneState } from '../../integrations/control-planes/control.ts'
import type { Certificate } from '../../kit/sys/certificate.ts'
import type { Clock } from '../../kit/sys/clock.ts'
import { writeDurably } from '../../kit/sys/durable-file.ts'
import type { Random } from '../../kit/sys/random.ts'
import { type AddonNeeds, userOf } from './addon-parts.ts'
import { kubeconfig } from './configuration-files.ts'
import { openClientCertificate } from './credentials.ts'
import type { PlaneRecord } from './record.ts'

export interface PlaneAddonsOptions {
  /** Folder of the control plane. */
  readonly folder: string
  readonly clock: Clock
  readonly random: Random
}

/** Applies the needs of an add-on in the cluster. */
export type ApplyNeeds = (needs: AddonNeeds) => Promise<void>

/** The access of one program to the cluster. */
export interface ProgramAccess {
  readonly program: string
  readonly certificate: Certificate
  /** JSON. */
  readonly kubeconfig: string
}

/** Names of files in the folder of the control plane. */
export const kubeconfigFile = (program: string): string => `${program}.kubeconfig`
export const tokenFile = (addon: string): string => `${addon}.token`

export abstract class PlaneAddons {
  readonly #options: PlaneAddonsOptions
  readonly #known: readonly AddonName[]

  /** `known` are the add-ons that can run here. */
  constructor(options: PlaneAddonsOptions, known: readonly AddonName[]) {
    this.#options = options
    this.#known = known
  }

  /** Applies everything again: objects in the cluster may have been deleted, or certificates expire. */
  abstract applyAnew(): void

  can(addon: string): boolean {
    return this.#known.some((name) => name === addon)
  }

  grants({ addons }: Pick<PlaneRecord, 'addons'>): ControlPlaneState['grants'] {
    return this.#known.map((name) => ({ addon: name, tokenId: addons[name]?.tokenId ?? null }))
  }

  /** The programs get this token once the record has its grant. */
  async writeToken(addon: string, token: string): Promise<void> {
    await writeDurably(join(this.#options.folder, tokenFile(addon)), token)
  }

  /** Prepares an add-on's access to the cluster. `authority` is a PEM certificate; `endpoint` is the address of the API
   *  for its programs. Programs without rules have no access. */
  protected async enter(
    needs: AddonNeeds,
    {
      apply,
      authority,
      endpoint,
    }: { readonly apply: ApplyNeeds; readonly authority: string; readonly endpoint: string },
  ): Promise<readonly ProgramAccess[]> {
    await apply(needs)
    const entered: ProgramAccess[] = []
    for (const program of needs.programs.filter(({ rules }) => rules.length > 0)) {
      const certificate = await openClientCertificate(this.#options, program.name, userOf(program))
      const config = JSON.stringify(kubeconfig(endpoint, authority, certificate))
      entered.push({ program: program.name, certificate, kubeconfig: config })
    }
    return entered
  }
}
