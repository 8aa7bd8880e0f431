/** What a pod reaches, tried from inside it. */

export type InPod = (...words: readonly string[]) => Promise<string>
export interface Place {
  readonly host: string
  readonly port: number
}

/** Of those places the ones where a connection is taken: `host port`. All are tried at once. */
export async function reachedFrom(inPod: InPod, places: readonly Place[]): Promise<readonly string[]> {
  const tries = places.map(
    ({ host, port }) => `(nc -w 3 ${host} ${port} < /dev/null > /dev/null 2>&1 && echo "${host} ${port}") &`,
  )
  const said = await inPod('sh', '-c', [...tries, 'wait; true'].join('\n'))
  return said.split('\n').filter((line) => line !== '')
}
