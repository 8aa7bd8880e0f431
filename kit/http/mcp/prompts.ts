/** Prompts: jobs that people choose from a menu of their client, as texts that a model then carries out. */
import type { Members } from './protocol.ts'

export interface Prompt {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly arguments: readonly { readonly name: string; readonly description: string; readonly required: boolean }[]
  /** The text for the model. Arguments that are not required may be missing. */
  render(values: Readonly<Record<string, string>>): string
}

/** Maximum length of an argument of a prompt. */
const LENGTH_MAXIMUM = 1_000

/** The fault of the arguments; undefined when there is none. */
export function promptFault(prompt: Prompt, values: Members): string | undefined {
  const unknown = Object.keys(values).find((name) => !prompt.arguments.some((argument) => argument.name === name))
  if (unknown !== undefined) return `The prompt ${prompt.name} has no argument ${unknown}.`
  for (const { name, required } of prompt.arguments) {
    const value = values[name]
    if (value === undefined ? required : typeof value !== 'string' || value.length > LENGTH_MAXIMUM)
      return `The argument ${name} must be a text of at most ${LENGTH_MAXIMUM} characters.`
  }
  return undefined
}
