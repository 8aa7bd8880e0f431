/** Ensures that QEMU is available: installs it if that is allowed, and prints a warning when guests will only be
 *  simulated. */
import { StartRefused } from './kit/data-folder.ts'
import type { HypervisorChoice } from './options.ts'
import { adviceOf, ensurePackages, type Packages } from './packages.ts'

/** Programs that are needed to run real guests. */
const PACKAGES: Packages = { 'qemu-system-x86_64': 'qemu-system-x86', 'qemu-img': 'qemu-utils' }

export interface HypervisorNeeds {
  readonly hypervisor: HypervisorChoice
  readonly mayInstall: boolean
  /** Prints one line for people. */
  readonly print: (line: string) => void
}

/** Returns the hypervisor setting for the agents: `auto` or `qemu` only if QEMU can run here. Throws StartRefused when
 *  QEMU was required and cannot run. */
export async function ensureHypervisor({ hypervisor, mayInstall, print }: HypervisorNeeds): Promise<HypervisorChoice> {
  if (hypervisor === 'simulated') {
    print('WARNING: guests are simulated, as asked for. No virtual machine is started.')
    return hypervisor
  }
  const missing = await ensurePackages(PACKAGES, { mayInstall, print })
  if (missing.length === 0) return hypervisor
  const advice = adviceOf(missing)
  if (hypervisor === 'qemu')
    throw new StartRefused(`QEMU is needed and not complete. Install what is missing: ${advice}`)
  print(
    'WARNING: QEMU is not complete here, so guests are SIMULATED: no virtual machine is started. For real ones: ' +
      `${advice}`,
  )
  return 'simulated'
}
