/** Languages that the portal and mails are written in. */
export const LANGUAGES = ['en', 'de'] as const
export type Language = (typeof LANGUAGES)[number]

/** The language of a tag such as `de-AT`; undefined for one that nothing is written in. */
export function languageOf(tag: string): Language | undefined {
  const primary = tag.trim().split('-')[0]?.toLowerCase()
  return LANGUAGES.find((language) => language === primary)
}

const TAGS_MAXIMUM = 20

/** The first choice of an `Accept-Language` header among our languages; undefined without one. */
export function acceptedLanguage(header: string | undefined): Language | undefined {
  const choices = (header ?? '').split(',', TAGS_MAXIMUM).flatMap((choice) => {
    const [tag = '', ...parameters] = choice.split(';')
    const language = languageOf(tag)
    const quality = parameters.map((each) => /^\s*q=([\d.]+)\s*$/.exec(each)?.[1]).find((each) => each !== undefined)
    const weight = Number(quality ?? 1)
    return language === undefined || !(weight > 0) ? [] : [{ language, weight }]
  })
  return choices.toSorted((left, right) => right.weight - left.weight)[0]?.language
}
