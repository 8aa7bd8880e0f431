/** The text with a full stop, so that another sentence can follow. */
export const sentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)
