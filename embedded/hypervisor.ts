/** Sees to it that QEMU is there: installs it where that is allowed, and says loudly when guests will only be
 *  simulated. */
import { StartRefused } from './kit/data-folder.ts'
import type { HypervisorChoice } from './options.ts'
import { adviceOf, ensurePackages, type Packages } from './packages.ts'

/** The programs that running real guests takes. */
const PACKAGES: Packages = { 'qemu-system-x86_64': 'qemu-system-x86', 'qemu-img': 'qemu-utils' }

export interface HypervisorNeeds {
  readonly hypervisor: HypervisorChoice
  readonly mayInstall: boolean
  /** One line for people. */
  readonly print: (line: string) => void
}

/** Answers what the agents shall use: `auto` and `qemu` only when QEMU can run here. Throws StartRefused when QEMU was
 *  demanded and cannot. */
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
