/** Where the embedded server may answer differently from the real one, each with the reason. Everything else must be equal.
 *  A rule takes what it matches out of both transcripts before they are compared. */

export interface Accepted {
  /** Scenarios it is about, as `theme/name`; all when absent. */
  readonly where?: RegExp
  readonly what: RegExp
  readonly reason: string
}

export const accepted: readonly Accepted[] = []

/** The transcript without what may differ. */
export const comparable = (scenario: string, transcript: string): string =>
  accepted.filter(({ where }) => where?.test(scenario) ?? true).reduce((text, { what }) => text.replace(what, '<accepted>'), transcript)
