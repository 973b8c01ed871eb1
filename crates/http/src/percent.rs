//! Percent-encoding of values in paths and forms.

const HEX: [u8; 16] = *b"0123456789ABCDEF";

/// Appends a value to a path or a query: what is not a letter, a digit or one of `-._~` is written as `%XX`.
pub fn encode_component(out: &mut Vec<u8>, value: &[u8]) {
    value.iter().for_each(|byte| encode_byte(out, *byte));
}

/// Appends a name or a value of a form: as [`encode_component`], and a space is `+`.
pub fn encode_form(out: &mut Vec<u8>, value: &[u8]) {
    for byte in value {
        match byte {
            b' ' => out.push(b'+'),
            byte => encode_byte(out, *byte),
        }
    }
}

fn encode_byte(out: &mut Vec<u8>, byte: u8) {
    if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
        out.push(byte);
    } else {
        out.extend_from_slice(&[b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_encoded_for_their_place() {
        let (mut path, mut form) = (Vec::new(), Vec::new());
        encode_component(&mut path, "a b&ü/".as_bytes());
        encode_form(&mut form, b"a b+c");
        assert_eq!((path.as_slice(), form.as_slice()), (&b"a%20b%26%C3%BC%2F"[..], &b"a+b%2Bc"[..]));
    }
}
