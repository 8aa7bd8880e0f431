/** Contents of a template of Debian. */

/** Argument of a Linux kernel that then avoids cmpxchg16b, which old emulators get wrong for kernels. */
export const WITHOUT_CX16 = 'clearcpuid=cx16'

/** Configuration of systemd-networkd: it keeps routes and rules of others when it sets an interface up again. */
export const FOREIGN_ROUTES_STAY = {
  'etc/systemd/networkd.conf.d/svccloud.conf':
    '[Network]\nManageForeignRoutes=no\nManageForeignRoutingPolicyRules=no\n',
} as const

/** Additions to the minimal Debian. */
export interface DebianSystem {
  readonly packages: readonly string[]
  /** Description of the packages, for people. */
  readonly installs: string
  /** Text by path, without the leading slash. */
  readonly files: Readonly<Record<string, string>>
  /** Content of executable files by path. */
  readonly programs: Readonly<Record<string, string>>
  /** Units that start at boot, and units that never start by themselves. */
  readonly enabled: readonly string[]
  readonly masked: readonly string[]
  /** Run in the new system, once everything is in place. */
  readonly commands: readonly (readonly string[])[]
  /** Targets of symbolic links by path. */
  readonly links: Readonly<Record<string, string>>
  /** Adds more to the system at that path, once everything else is in place. Throws ImageUnavailable when it has
   *  nothing to add. */
  readonly fill?: (root: string) => Promise<void>
  readonly diskBytes: number
  /** Kernel arguments, besides those of every image. */
  readonly kernelArguments: readonly string[]
}

/** Versions sort by time. */
export const debianVersion = (now: Date): string => now.toISOString().replace(/[-:]|\.\d+/g, '')
