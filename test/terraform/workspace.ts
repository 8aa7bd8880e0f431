/** A folder in which the real Terraform runs, against the running product. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inject } from 'vitest'
import { environment } from '../../kit/sys/process.ts'

const OUTPUT_BYTES_MAXIMUM = 64 * 1024 * 1024
const PLAN = 'plan.bin'
const OVERRIDE = 'example_override.tf.json'

interface Ended {
  readonly code: number
  /** What it said, errors included. */
  readonly output: string
  readonly stdout: string
}

/** Programs that run the provider; tests of one that is not there are skipped. */
export const PROGRAMS = ['terraform', 'tofu'] as const
export type Program = (typeof PROGRAMS)[number]

/** The path of the program; undefined when it is not there. */
export const pathOf = (program: Program): string | undefined => inject('terraformPrograms')?.[program]

type Values = Readonly<Record<string, unknown>>

/** A resource in a plan, as `terraform show -json` has it. */
export interface Planned {
  readonly address: string
  readonly change: {
    readonly actions: readonly string[]
    readonly before: Values | null
    readonly after: Values | null
    readonly after_unknown: Values
  }
}

export class Workspace {
  readonly folder: string
  readonly #program: string
  readonly #environment: Readonly<Record<string, string>>

  private constructor(folder: string, program: string, changed: Readonly<Record<string, string>>) {
    this.folder = folder
    this.#program = program
    this.#environment = changed
  }

  /** With this configuration, and variables of the environment besides those of the tier. */
  static async open(
    configuration: string,
    program: Program = 'terraform',
    changed: Readonly<Record<string, string>> = {},
  ): Promise<Workspace> {
    const folder = await mkdtemp(join(tmpdir(), 'svccloud-workspace-'))
    await writeFile(join(folder, 'main.tf'), configuration)
    return new Workspace(folder, pathOf(program) ?? program, changed)
  }

  /** Runs it to its end, whatever comes of it. */
  attempt(...flags: readonly string[]): Promise<Ended> {
    const { PATH, HOME } = environment()
    return new Promise((resolve) => {
      execFile(
        this.#program,
        [...flags],
        {
          cwd: this.folder,
          maxBuffer: OUTPUT_BYTES_MAXIMUM,
          env: {
            PATH,
            HOME,
            TF_CLI_CONFIG_FILE: inject('terraformConfiguration') ?? '',
            TF_CLI_ARGS: '-no-color',
            TF_IN_AUTOMATION: '1',
            CHECKPOINT_DISABLE: '1',
            SVCCLOUD_URL: inject('terraformUrl') ?? '',
            SVCCLOUD_TOKEN: inject('terraformToken') ?? '',
            ...this.#environment,
          },
        },
        (error, stdout, stderr) => {
          resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: stdout + stderr, stdout })
        },
      )
    })
  }

  /** Rejects when it fails. */
  async run(...flags: readonly string[]): Promise<string> {
    const { code, output, stdout } = await this.attempt(...flags)
    if (code !== 0) throw new Error(`terraform ${flags.join(' ')} ended with ${code}:\n${output}`)
    return stdout
  }

  async apply(): Promise<void> {
    await this.run('apply', '-auto-approve', '-input=false')
  }

  /** Everything that an apply would change; empty when nothing. */
  async changes(): Promise<readonly Planned[]> {
    await this.run('plan', '-input=false', `-out=${PLAN}`)
    // as Terraform documents it
    const plan = JSON.parse(await this.run('show', '-json', PLAN)) as { resource_changes?: readonly Planned[] }
    return (plan.resource_changes ?? []).filter(({ change }) => change.actions.join() !== 'no-op')
  }

  /** Gives attributes of the resource other values than its configuration has. */
  async override(type: string, values: Values): Promise<void> {
    await writeFile(join(this.folder, OVERRIDE), JSON.stringify({ resource: { [type]: { example: values } } }))
  }

  /** Attributes of a resource in the state. */
  async attributes(type: string, name = 'example'): Promise<Values> {
    // as Terraform writes it
    const state = JSON.parse(await this.text('terraform.tfstate')) as {
      resources: readonly { type: string; name: string; instances: readonly { attributes: Values }[] }[]
    }
    const [found] = state.resources.filter((resource) => resource.type === type && resource.name === name)
    const [instance] = found?.instances ?? []
    if (instance === undefined) throw new Error(`the state has no ${type}`)
    return instance.attributes
  }

  text(file: string): Promise<string> {
    return readFile(join(this.folder, file), 'utf8')
  }

  async close(): Promise<void> {
    await this.run('destroy', '-auto-approve', '-input=false')
    await rm(this.folder, { recursive: true, force: true })
  }
}
