/** What a template of Debian is made of. */

/** Argument of a Linux kernel that leaves cmpxchg16b alone, which old emulators get wrong for kernels. */
export const WITHOUT_CX16 = 'clearcpuid=cx16'

/** Of systemd-networkd: routes and rules that others make stay when it sets an interface up again. */
export const FOREIGN_ROUTES_STAY = {
  'etc/systemd/networkd.conf.d/svccloud.conf':
    '[Network]\nManageForeignRoutes=no\nManageForeignRoutingPolicyRules=no\n',
} as const

/** What is put on top of the smallest Debian. */
export interface DebianSystem {
  readonly packages: readonly string[]
  /** What the packages are, for people. */
  readonly installs: string
  /** Text by path, without the leading slash. */
  readonly files: Readonly<Record<string, string>>
  /** The same, of files that are executed. */
  readonly programs: Readonly<Record<string, string>>
  /** Units that start at boot, and units that never start by themselves. */
  readonly enabled: readonly string[]
  readonly masked: readonly string[]
  /** Run inside, when everything is there. */
  readonly commands: readonly (readonly string[])[]
  /** Targets of symbolic links by path. */
  readonly links: Readonly<Record<string, string>>
  /** Puts more into the system at that path, when everything else is there. Throws ImageUnavailable when it has nothing
   *  to put. */
  readonly fill?: (root: string) => Promise<void>
  readonly diskBytes: number
  /** Of the kernel, beside those that every image has. */
  readonly kernelArguments: readonly string[]
}

/** Versions sort by their time. */
export const debianVersion = (now: Date): string => now.toISOString().replace(/[-:]|\.\d+/g, '')
